#include "support/gguf_writer.h"

#include "headroom/error.h"

namespace headroom::test {
namespace {

std::uint64_t aligned(std::uint64_t size, std::uint64_t alignment) {
  return (size + alignment - 1) / alignment * alignment;
}

}  // namespace

std::string gguf_text(std::string_view text) {
  return bytes_of(std::uint64_t{text.size()}) + std::string(text);
}

GgufWriter& GgufWriter::add_raw(std::string_view key, std::uint32_t type,
                                const std::string& bytes) {
  metadata_ += gguf_text(key) + bytes_of(type) + bytes;
  ++keys_;
  return *this;
}

GgufWriter& GgufWriter::add(std::string_view key, std::uint32_t value) {
  return add_raw(key, 4, bytes_of(value));
}
GgufWriter& GgufWriter::add(std::string_view key, float value) {
  return add_raw(key, 6, bytes_of(value));
}
GgufWriter& GgufWriter::add(std::string_view key, bool value) {
  return add_raw(key, 7, value ? std::string(1, '\1') : std::string(1, '\0'));
}
GgufWriter& GgufWriter::add(std::string_view key, const char* value) {
  return add_raw(key, 8, gguf_text(value));
}
GgufWriter& GgufWriter::add(std::string_view key, const std::vector<std::uint32_t>& values) {
  std::string bytes = bytes_of(std::uint32_t{4}) + bytes_of(std::uint64_t{values.size()});
  for (const std::uint32_t value : values) bytes += bytes_of(value);
  return add_raw(key, 9, bytes);
}
GgufWriter& GgufWriter::add(std::string_view key, const std::vector<std::string>& values) {
  std::string bytes = bytes_of(std::uint32_t{8}) + bytes_of(std::uint64_t{values.size()});
  for (const std::string& value : values) bytes += gguf_text(value);
  return add_raw(key, 9, bytes);
}

GgufWriter& GgufWriter::tensor_raw(std::string_view name, std::vector<std::uint64_t> sizes,
                                   std::uint32_t type, std::uint64_t offset) {
  infos_ += gguf_text(name) + bytes_of(static_cast<std::uint32_t>(sizes.size()));
  for (const std::uint64_t size : sizes) infos_ += bytes_of(size);
  infos_ += bytes_of(type) + bytes_of(offset);
  ++tensors_;
  return *this;
}

GgufWriter& GgufWriter::tensor(std::string_view name, std::vector<std::int64_t> shape,
                               checkpoint::GgmlType type) {
  const auto bytes = checkpoint::ggml_bytes(type, shape);
  if (!bytes)
    throw Error(ErrorCode::internal, "the rows do not fill whole blocks", std::string(name));
  return tensor(name, std::move(shape), type, std::string(static_cast<std::size_t>(*bytes), '\0'));
}

GgufWriter& GgufWriter::tensor(std::string_view name, std::vector<std::int64_t> shape,
                               checkpoint::GgmlType type, const std::string& data) {
  tensor_raw(name, {shape.rbegin(), shape.rend()}, static_cast<std::uint32_t>(type), data_.size());
  data_ += data;
  data_.resize(aligned(data_.size(), kAlignment), '\0');
  return *this;
}

std::string GgufWriter::str() const {
  std::string file =
      "GGUF" + bytes_of(version_) + bytes_of(tensors_) + bytes_of(keys_) + metadata_ + infos_;
  file.resize(aligned(file.size(), kAlignment), '\0');
  return file + data_;
}

GgufWriter small_llama_metadata() {
  GgufWriter writer;
  writer.add("general.architecture", "llama").add("general.name", "Small");
  writer.add("llama.context_length", 32U).add("llama.embedding_length", 256U);
  writer.add("llama.block_count", 2U).add("llama.feed_forward_length", 512U);
  writer.add("llama.attention.head_count", 4U).add("llama.attention.head_count_kv", 2U);
  writer.add("llama.attention.layer_norm_rms_epsilon", 1e-5F);
  writer.add("llama.rope.freq_base", 500000.0F).add("llama.rope.dimension_count", 64U);
  return writer;
}

}  // namespace headroom::test
