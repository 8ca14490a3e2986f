// Safetensors headers with very many tensors.
#include "many_tensors.h"

#include <fmt/format.h>

#include <array>
#include <fstream>

namespace headroom::test {

void write_many_tensors(const std::filesystem::path& path, std::int64_t tensors) {
  constexpr std::int64_t kInLayer = 15000;
  constexpr std::int64_t kBytes = 16;
  std::string header = "{";
  for (std::int64_t i = 0; i < tensors; ++i) {
    header += fmt::format(R"({}"model.layers.{}.mlp.experts.{}.w{}.weight":)"
                          R"({{"dtype":"BF16","shape":[4,2],"data_offsets":[{},{}]}})",
                          i == 0 ? "" : ",", i / kInLayer, i % kInLayer / 3, i % 3 + 1, i * kBytes,
                          (i + 1) * kBytes);
  }
  header += "}";
  std::array<char, 8> length{};  // little-endian
  for (std::size_t i = 0; i < length.size(); ++i) {
    length[i] = static_cast<char>((header.size() >> (8 * i)) & 0xffU);
  }
  std::ofstream(path, std::ios::binary).write(length.data(), length.size()) << header;
  std::filesystem::resize_file(
      path, std::filesystem::file_size(path) + static_cast<std::uintmax_t>(tensors * kBytes));
}

}  // namespace headroom::test
