#include "weight_reader.h"

#include <algorithm>

#include "headroom/error.h"
#include "mapped_file.h"

namespace headroom::detail {
namespace {

class CheckpointReader final : public WeightReader {
 public:
  explicit CheckpointReader(checkpoint::Checkpoint files) : checkpoint_(std::move(files)) {}

  [[nodiscard]] std::optional<std::vector<std::int64_t>> shape(
      const std::string& name) const override {
    const checkpoint::StoredTensor* const tensor = checkpoint_.find(name);
    if (tensor == nullptr) return std::nullopt;
    return tensor->shape;
  }
  [[nodiscard]] std::vector<std::string> names() const override { return checkpoint_.names(); }
  [[nodiscard]] const std::string& location(const std::string& name) const override {
    return checkpoint_.location(name);
  }
  void read(const std::string& name, std::optional<std::int64_t> expert,
            std::span<float> out) const override {
    const checkpoint::StoredTensor* const whole = checkpoint_.find(name);
    if (whole == nullptr) throw Error(ErrorCode::internal, "reading a missing tensor");
    const checkpoint::StoredTensor tensor = expert ? checkpoint::slice(*whole, *expert) : *whole;
    if (out.size() * checkpoint::stored_bits(tensor.type) / 8 != tensor.data.size()) {
      throw Error(ErrorCode::internal, "the output does not have the tensor's size");
    }
    constexpr std::size_t kPart = std::size_t{1} << 20U;  // values of the mapped file at once
    for (std::size_t at = 0; at < out.size(); at += kPart) {
      const std::span<float> to = out.subspan(at, std::min(kPart, out.size() - at));
      checkpoint::release_pages(read_bytes(tensor, at, to, name));
    }
  }
  void read_part(const std::string& name, std::optional<std::int64_t> expert, std::int64_t first,
                 std::span<float> out) const override {
    const checkpoint::StoredTensor* const whole = checkpoint_.find(name);
    if (whole == nullptr) throw Error(ErrorCode::internal, "reading a missing tensor");
    (void)read_bytes(expert ? checkpoint::slice(*whole, *expert) : *whole,
                     static_cast<std::size_t>(first), out, name);
  }
  void require_unchanged() const override { checkpoint_.require_unchanged(); }
  [[nodiscard]] NameTable name_table(const ModelSpec& spec) const override {
    return detail::name_table(spec);
  }

 private:
  /// Writes values of `tensor` from number `first` on to `out`. Returns their bytes.
  [[nodiscard]] std::span<const std::byte> read_bytes(checkpoint::StoredTensor tensor,
                                                      std::size_t first, std::span<float> out,
                                                      const std::string& name) const {
    const std::size_t bits = checkpoint::stored_bits(tensor.type);
    const std::size_t begin = first * bits / 8;
    const std::size_t bytes = out.size() * bits / 8;
    if (begin + bytes > tensor.data.size()) {
      throw Error(ErrorCode::internal, "reading beyond the end of a tensor");
    }
    tensor.data = tensor.data.subspan(begin, bytes);
    checkpoint::copy_as_float32(tensor, out, checkpoint::tensor_place(location(name), name));
    return tensor.data;
  }

  checkpoint::Checkpoint checkpoint_;
};

}  // namespace

std::vector<std::byte> WeightReader::read_blocks(const std::string& /*name*/,
                                                 std::optional<std::int64_t> /*expert*/) const {
  throw Error(ErrorCode::internal, "the file has no blocks");
}

checkpoint::GroupedWeights WeightReader::read_groups(const std::string& /*name*/,
                                                     std::optional<std::int64_t> /*expert*/) const {
  throw Error(ErrorCode::internal, "the file has no groups of codes");
}

void WeightReader::read_part(const std::string& name, std::optional<std::int64_t> expert,
                             std::int64_t first, std::span<float> out) const {
  const std::optional<std::vector<std::int64_t>> sizes = shape(name);
  if (!sizes) throw Error(ErrorCode::internal, "reading a missing tensor");
  std::int64_t elements = 1;
  for (const std::int64_t size : std::span(*sizes).subspan(expert ? 1 : 0)) elements *= size;
  std::vector<float> whole(static_cast<std::size_t>(elements));
  read(name, expert, whole);
  std::copy_n(whole.begin() + first, out.size(), out.begin());
}

std::unique_ptr<WeightReader> read_checkpoint(checkpoint::Checkpoint checkpoint) {
  return std::make_unique<CheckpointReader>(std::move(checkpoint));
}

}  // namespace headroom::detail
