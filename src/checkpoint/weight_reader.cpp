#include "weight_reader.h"

#include "headroom/error.h"

namespace headroom::checkpoint {
namespace {

class CheckpointReader final : public WeightReader {
 public:
  explicit CheckpointReader(Checkpoint checkpoint) : checkpoint_(std::move(checkpoint)) {}

  [[nodiscard]] std::optional<std::vector<std::int64_t>> shape(
      const std::string& name) const override {
    const StoredTensor* const tensor = checkpoint_.find(name);
    if (tensor == nullptr) return std::nullopt;
    return tensor->shape;
  }
  [[nodiscard]] std::vector<std::string> names() const override { return checkpoint_.names(); }
  [[nodiscard]] const std::string& location(const std::string& name) const override {
    return checkpoint_.location(name);
  }
  void read(const std::string& name, std::optional<std::int64_t> expert,
            std::span<float> out) const override {
    const StoredTensor* const whole = checkpoint_.find(name);
    if (whole == nullptr) throw Error(ErrorCode::internal, "a tensor is read that is not there");
    const StoredTensor tensor = expert ? slice(*whole, *expert) : *whole;
    copy_as_float32(tensor, out, tensor_place(location(name), name));
  }
  [[nodiscard]] NameTable name_table(const ModelSpec& spec) const override {
    return checkpoint::name_table(spec);
  }

 private:
  Checkpoint checkpoint_;
};

}  // namespace

std::unique_ptr<WeightReader> read_checkpoint(Checkpoint checkpoint) {
  return std::make_unique<CheckpointReader>(std::move(checkpoint));
}

}  // namespace headroom::checkpoint
