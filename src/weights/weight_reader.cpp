#include "weight_reader.h"

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

std::unique_ptr<WeightReader> read_checkpoint(checkpoint::Checkpoint checkpoint) {
  return std::make_unique<CheckpointReader>(std::move(checkpoint));
}

}  // namespace headroom::detail
