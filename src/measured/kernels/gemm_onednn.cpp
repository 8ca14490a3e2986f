// Matrix products of many rows with oneDNN's matmul, which chooses the layout of W and applies the
// epilogue to y in registers.
#include "headroom/error.h"
#include "linear_kernels.h"

#ifdef HEADROOM_HAS_ONEDNN

#include <array>
#include <memory>
#include <optional>
#include <utility>

#include "bfloat16.h"
#include "cache_line.h"
#include "headroom/expr.h"
#include "onednn_api.h"
#include "parallel.h"
#include "stacked_rows.h"
#include "weight_stream.h"

namespace headroom::measured {

namespace {

using dnnl::memory;
using Tag = memory::format_tag;

memory::desc matrix_desc(std::int64_t rows, std::int64_t columns, Tag tag,
                         memory::data_type type = memory::data_type::f32) {
  return {{rows, columns}, type, tag};
}

/// Rounds `values` to bfloat16.
void narrow(std::span<const float> values, std::uint16_t* to) {
  const auto count = std::ssize(values);
#pragma omp parallel for if (count >= kSerialElements) schedule(static)
  for (std::int64_t i = 0; i < count; ++i) {
    to[i] = bfloat16_bits(round_to_bfloat16(values[static_cast<std::size_t>(i)]));
  }
}

dnnl::post_ops post_ops(Epilogue epilogue) {
  dnnl::post_ops operations;
  switch (epilogue) {
    case Epilogue::none:
      break;
    case Epilogue::relu:
      onednn::append_eltwise(operations, dnnl::algorithm::eltwise_relu, 0.0F);
      break;
    case Epilogue::gelu:
      onednn::append_eltwise(operations, dnnl::algorithm::eltwise_gelu_erf, 0.0F);
      break;
    case Epilogue::gelu_tanh:
      onednn::append_eltwise(operations, dnnl::algorithm::eltwise_gelu_tanh, 0.0F);
      break;
    case Epilogue::silu:
      onednn::append_eltwise(operations, dnnl::algorithm::eltwise_swish, 1.0F);
      break;
    case Epilogue::tanh:
      onednn::append_eltwise(operations, dnnl::algorithm::eltwise_tanh, 0.0F);
      break;
    case Epilogue::add_residual:
      operations.append_sum(1.0F);
      break;
  }
  return operations;
}

/// Outputs per slice of weights are multiples of this: of the blocks of all of oneDNN's layouts,
/// 16, 32, 48 or 64.
constexpr std::int64_t kOutputs = 192;

class OnednnKernel : public LinearKernel {
 public:
  OnednnKernel(const StackedWeights& weights, const LinearOptions& options)
      : in_(weights.in),
        out_(weights.out),
        has_bias_(!weights.bias.empty()),
        epilogue_(options.epilogue),
        type_(multiplies_bfloat16(options) ? memory::data_type::bf16 : memory::data_type::f32) {
    const auto layout =
        matmul(options.typical_rows, matrix_desc(in_, out_, Tag::any, type_)).weights_desc();
    if (options.rows == RowRange::both) {
      blocks_ = onednn::output_blocks(layout, word_inputs());
      if (blocks_ && !can_stream_panels(blocks_->width)) blocks_.reset();
      const bool has_rows = !blocks_ && !is_narrow();
      if (has_rows) stream_ = share_stream(weights, epilogue_, StreamSlices::whole_rows);
      if (!blocks_ && is_narrow()) own_few_ = make_own_few(weights, options);
    }
    if (stream_ == nullptr) {
      bias_ = weights.bias;
      pack(weights, layout);
    } else {
      const memory::desc rows{{in_, out_}, type_, memory::dims{1, stream_->padded_in}};
      weight_memory_ = memory(rows, engine_, const_cast<float*>(stream_->weight.data()));
    }
    if (has_bias_) {
      bias_memory_ =
          memory(matrix_desc(1, out_, Tag::ab), engine_, const_cast<float*>(bias().data()));
    }
  }

  void prepare(std::int64_t rows) override { prepared_for(rows); }

  void run(const float* x, float* y, std::int64_t rows) override {
    PreparedRun& prepared = prepared_for(rows);
    float* const scratch = shared_scratch(prepared.scratch_floats + narrow_floats(rows));
    prepared.x.set_data_handle(const_cast<float*>(x));
    if (is_narrow()) {
      auto* const narrowed = reinterpret_cast<std::uint16_t*>(scratch + prepared.scratch_floats);
      narrow({x, static_cast<std::size_t>(rows * in_)}, narrowed);
      prepared.x.set_data_handle(narrowed);
    }
    prepared.y.set_data_handle(y);
    // The C interface takes its arguments from the stack; the C++ one builds a map.
    const std::array<dnnl_exec_arg_t, 5> arguments{{{DNNL_ARG_SRC, prepared.x.get()},
                                                    {DNNL_ARG_WEIGHTS, weight_memory_.get()},
                                                    {DNNL_ARG_DST, prepared.y.get()},
                                                    {DNNL_ARG_SCRATCHPAD, prepared.scratch.get()},
                                                    {DNNL_ARG_BIAS, bias_memory_.get(true)}}};
    prepared.scratch.set_data_handle(scratch);
    const int count = has_bias_ ? 5 : 4;
    dnnl::error::wrap_c_api(
        dnnl_primitive_execute(prepared.primitive.get(), work_.get(), count, arguments.data()),
        "cannot multiply matrices");
  }

  [[nodiscard]] std::int64_t held_bytes() const override {
    return static_cast<std::int64_t>(weight_.size() + bias_.size() * sizeof(float));
  }

  [[nodiscard]] std::int64_t weight_bytes() const override {
    const std::size_t bytes = is_narrow() ? sizeof(std::uint16_t) : sizeof(float);
    return in_ * out_ * static_cast<std::int64_t>(bytes);
  }

  /// No row is read from oneDNN's layouts, whose outputs lie far apart.
  [[nodiscard]] bool read_row(std::int64_t /*row*/, float* /*to*/) const override { return false; }

  [[nodiscard]] std::unique_ptr<LinearKernel> kernel_of_few_rows() override {
    if (stream_ != nullptr) return make_streaming_kernel(stream_);
    if (!blocks_) return std::move(own_few_);
    if (is_narrow()) return make_panel_kernel(panels<std::uint16_t>(), bias_, epilogue_);
    return make_panel_kernel(panels<float>(), bias_, epilogue_);
  }

 private:
  /// Primitive and memory objects for one number of rows and threads.
  struct PreparedRun {
    std::int64_t rows = 0;
    int threads = 0;
    dnnl::matmul primitive;
    memory x;
    memory y;
    memory scratch;
    std::int64_t scratch_floats = 0;
  };

  template <class Weight>
  [[nodiscard]] WeightPanels<Weight> panels() const {
    return {reinterpret_cast<const Weight*>(weight_.data()), in_, out_, blocks_->width,
            blocks_->stride};
  }

  void place() const {
    if (!blocks_) return;
    if (is_narrow())
      place_panels(panels<std::uint16_t>());
    else
      place_panels(panels<float>());
  }

  /// Leaves the memory of the weights as it is, since they are packed once more.
  static std::unique_ptr<LinearKernel> make_own_few(const StackedWeights& weights,
                                                    const LinearOptions& options) {
    std::vector<LinearPart> kept(weights.parts.begin(), weights.parts.end());
    for (LinearPart& part : kept) part.source = SourceMemory::kept;
    StackedWeights again = weights;
    again.parts = kept;
    return make_narrow_kernel(again, options);
  }

  /// Copies the weights into `layout`.
  void pack(const StackedWeights& weights, const memory::desc& layout) {
    weight_.resize(layout.get_size());
    place();
    weight_memory_ = memory(layout, engine_, weight_.data());
    StackedRows(weights).for_slices(kOutputs, [&](Range rows, const float* values) {
      const memory::dims sizes{in_, rows.size()};
      const bool all = rows.size() == out_;
      memory to(all ? layout : layout.submemory_desc(sizes, {0, rows.begin}), engine_,
                weight_.data());
      // oneDNN takes read-only sources as pointers to non-const.
      memory plain(matrix_desc(in_, rows.size(), Tag::ba), engine_, const_cast<float*>(values));
      dnnl::reorder(plain, to).execute(work_, plain, to);
      work_.wait();
    });
  }

  [[nodiscard]] dnnl::matmul::primitive_desc matmul(std::int64_t rows,
                                                    const memory::desc& weight) const {
    dnnl::primitive_attr attributes;
    attributes.set_post_ops(post_ops(epilogue_));
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    const auto x = matrix_desc(rows, in_, Tag::ab, type_);
    const auto y = matrix_desc(rows, out_, Tag::ab);
    if (!has_bias_) {
      return onednn::describe<dnnl::matmul>(engine_, attributes, x, weight, y);
    }
    const auto bias = matrix_desc(1, out_, Tag::ab);
    return onednn::describe<dnnl::matmul>(engine_, attributes, x, weight, bias, y);
  }

  [[nodiscard]] const PooledVector<float>& bias() const {
    return stream_ == nullptr ? bias_ : stream_->bias;
  }

  [[nodiscard]] bool is_narrow() const noexcept { return type_ == memory::data_type::bf16; }

  [[nodiscard]] std::int64_t word_inputs() const noexcept {
    return is_narrow() ? kWordInputs<std::uint16_t> : kWordInputs<float>;
  }

  /// Floats of scratch that x takes in bfloat16.
  [[nodiscard]] std::int64_t narrow_floats(std::int64_t rows) const {
    return is_narrow() ? ceil_div(rows * in_, std::int64_t{2}) : 0;
  }

  PreparedRun& prepared_for(std::int64_t rows) {
    const int threads = omp_get_max_threads();
    for (PreparedRun& prepared : prepared_) {
      if (prepared.rows == rows && prepared.threads == threads) return prepared;
    }
    const auto description = matmul(rows, weight_memory_.get_desc());
    const auto scratch = description.scratchpad_desc();
    const auto scratch_floats = round_up(
        static_cast<std::int64_t>(ceil_div(scratch.get_size(), sizeof(float))), kCacheLineFloats);
    (void)shared_scratch(scratch_floats + narrow_floats(rows));  // allocated now, not when timed
    return prepared_.emplace_back(
        PreparedRun{rows, threads, dnnl::matmul(description),
                    memory(description.src_desc(), engine_, DNNL_MEMORY_NONE),
                    memory(description.dst_desc(), engine_, DNNL_MEMORY_NONE),
                    memory(scratch, engine_, DNNL_MEMORY_NONE), scratch_floats});
  }

  std::int64_t in_;
  std::int64_t out_;
  bool has_bias_;
  PooledVector<float> bias_;  ///< empty, as weight_, with `stream_`
  UnfilledVector<std::byte> weight_;
  Epilogue epilogue_;
  memory::data_type type_;  ///< of weights and x; sums and bias are float32
  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
  dnnl::stream work_{engine_};
  std::optional<onednn::OutputBlocks> blocks_;  ///< of weight_, if few rows read it, too
  std::shared_ptr<const WeightStream> stream_;  ///< in place of weight_, likewise
  /// bfloat16 weights in a layout that few rows cannot read: their own, until it is taken.
  std::unique_ptr<LinearKernel> own_few_;
  memory weight_memory_;
  memory bias_memory_;
  std::vector<PreparedRun> prepared_;
};

}  // namespace

bool onednn_has_bfloat16() noexcept {
#if defined(__x86_64__)
  const auto has = static_cast<unsigned>(dnnl::get_effective_cpu_isa());
  const auto needed = static_cast<unsigned>(dnnl::cpu_isa::avx512_core_bf16);
  return (has & needed) == needed;
#else
  return false;
#endif
}

std::unique_ptr<LinearKernel> make_onednn_kernel(const StackedWeights& weights,
                                                 const LinearOptions& options) {
  return std::make_unique<OnednnKernel>(weights, options);
}

}  // namespace headroom::measured

#else

namespace headroom::measured {

bool onednn_has_bfloat16() noexcept { return false; }

std::unique_ptr<LinearKernel> make_onednn_kernel(const StackedWeights& /*weights*/,
                                                 const LinearOptions& /*options*/) {
  throw Error(ErrorCode::missing_resource, "this build of headroom lacks oneDNN", {},
              "install oneDNN (libdnnl-dev) and rebuild, or use the eigen backend");
}

}  // namespace headroom::measured

#endif
