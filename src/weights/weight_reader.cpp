#include "weight_reader.h"

#include <algorithm>

#include "headroom/error.h"

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
    checkpoint::copy_as_float32(tensor, out, checkpoint::tensor_place(location(name), name));
  }
  void read_part(const std::string& name, std::optional<std::int64_t> expert, std::int64_t first,
                 std::span<float> out) const override {
    const checkpoint::StoredTensor* const whole = checkpoint_.find(name);
    if (whole == nullptr) throw Error(ErrorCode::internal, "reading a missing tensor");
    checkpoint::StoredTensor part = expert ? checkpoint::slice(*whole, *expert) : *whole;
    const std::size_t bits = checkpoint::stored_bits(part.type);
    const std::size_t begin = static_cast<std::size_t>(first) * bits / 8;
    const std::size_t bytes = out.size() * bits / 8;
    if (begin + bytes > part.data.size()) {
      throw Error(ErrorCode::internal, "reading beyond the end of a tensor");
    }
    part.data = part.data.subspan(begin, bytes);
    checkpoint::copy_as_float32(part, out, checkpoint::tensor_place(location(name), name));
  }
  void require_unchanged() const override { checkpoint_.require_unchanged(); }
  [[nodiscard]] NameTable name_table(const ModelSpec& spec) const override {
    return detail::name_table(spec);
  }

 private:
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
