// Finds accelerators: by their makers' tools, and by the kernel.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>

#include "headroom/system.h"
#include "number_text.h"

namespace headroom {
namespace {

namespace fs = std::filesystem;

std::string_view trimmed(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ') || text.ends_with('\r')) text.remove_suffix(1);
  return text;
}

std::optional<Integer> number_of(std::string_view text) {
  const std::optional<std::int64_t> value = detail::integer_of(text);
  if (!value || *value < 0) return std::nullopt;
  return *value;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t end = text.find(separator);
    parts.push_back(trimmed(text.substr(0, end)));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

/// The program's path, by the PATH; empty if it is not there.
std::string found_program(const std::string& name) {
  const char* const path = std::getenv("PATH");  // NOLINT(concurrency-mt-unsafe)
  if (path == nullptr) return {};
  for (const std::string_view folder : split(path, ':')) {
    if (!folder.starts_with('/')) continue;
    const fs::path file = fs::path(folder) / name;
    std::error_code failed;
    const fs::perms mode = fs::status(file, failed).permissions();
    const bool runs = !failed && (mode & fs::perms::others_exec) != fs::perms::none;
    if (runs && fs::is_regular_file(file, failed)) return file.string();
  }
  return {};
}

/// Standard output of a program that the PATH has; empty if it has none, or the program fails.
std::string output_of(const std::string& name, const std::string& arguments) {
  if (found_program(name).empty()) return {};
  // The words are constants of this file.
  const std::string command = name + " " + arguments + " 2>/dev/null";
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.c_str(), "r"), pclose);  // NOLINT
  if (!pipe) return {};
  constexpr std::size_t kMostBytes = std::size_t{1} << 20U;
  std::string text;
  std::array<char, 4096> buffer{};
  while (text.size() < kMostBytes) {
    const std::size_t size = std::fread(buffer.data(), 1, buffer.size(), pipe.get());
    if (size == 0) break;
    text.append(buffer.data(), size);
  }
  return text;
}

/// Words of letters and digits in lower case: "NVIDIA A100-SXM4-40GB" -> nvidia a100 sxm4 40gb.
std::vector<std::string> words_of(std::string_view name) {
  std::vector<std::string> words(1);
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) != 0) {
      words.back() += static_cast<char>(std::tolower(byte));
    } else if (!words.back().empty()) {
      words.emplace_back();
    }
  }
  if (words.back().empty()) words.pop_back();
  return words;
}

/// "40gb"
bool is_size(const std::string& word) {
  return word.size() > 2 && word.ends_with("gb") &&
         std::ranges::all_of(word.substr(0, word.size() - 2),
                             [](unsigned char c) { return std::isdigit(c) != 0; });
}

/// True if memory that a driver reports is that of the datasheet or its readings, within 8 %:
/// boards hold back up to that much for ECC.
bool is_alike(Integer reported, const MachineProfile& machine) {
  const auto* sheet = std::get_if<DatasheetRates>(&machine.rates);
  if (sheet == nullptr || sheet->memory.total.bytes == 0) return false;
  const double ratio =
      static_cast<double>(reported) / static_cast<double>(sheet->memory.total.bytes);
  return ratio > 0.92 && ratio < 1.08;
}

/// Words of the catalogue's name that the driver's name has; 0 if another word than a size is
/// missing.
std::size_t matching_words(const std::vector<std::string>& device, const std::string& machine) {
  std::size_t matching = 0;
  for (const std::string& word : words_of(machine)) {
    const bool has = std::ranges::find(device, word) != device.end();
    if (!has && !is_size(word)) return 0;
    if (has) ++matching;
  }
  return matching;
}

std::string text_member(const nlohmann::json& json, const std::vector<std::string>& keys) {
  for (const std::string& key : keys) {
    const auto found = json.find(key);
    if (found != json.end() && found->is_string()) return found->get<std::string>();
  }
  return {};
}

std::optional<Integer> number_in(const fs::path& file) {
  std::ifstream stream(file);
  std::string line;
  std::getline(stream, line);
  return number_of(line);
}

std::string line_in(const fs::path& file) {
  std::ifstream stream(file);
  std::string line;
  std::getline(stream, line);
  return line;
}

void name_in_catalogue(std::vector<LocalDevice>& devices) {
  for (LocalDevice& device : devices) {
    device.machine = catalogue_name(device.name, device.memory_bytes);
  }
}

}  // namespace

std::vector<LocalDevice> parse_nvidia_smi(std::string_view text) {
  constexpr Integer kMebibyte = Integer{1} << 20U;
  std::vector<LocalDevice> devices;
  for (const std::string_view line : split(text, '\n')) {
    const std::vector<std::string_view> fields = split(line, ',');
    if (fields.size() != 4 || fields[0].empty()) continue;
    const auto mebibytes = [&](std::size_t index) -> std::optional<Integer> {
      const auto number = number_of(fields[index]);
      return number ? std::optional(*number * kMebibyte) : std::nullopt;
    };
    devices.push_back({std::string(fields[0]),
                       mebibytes(1),
                       mebibytes(2),
                       std::string(fields[3]),
                       "nvidia-smi",
                       {}});
  }
  name_in_catalogue(devices);
  return devices;
}

std::vector<LocalDevice> parse_rocm_smi(std::string_view text) {
  const nlohmann::json json = nlohmann::json::parse(text, nullptr, false);
  std::vector<LocalDevice> devices;
  if (!json.is_object()) return devices;
  const nlohmann::json system = json.value("system", nlohmann::json::object());
  const std::string driver =
      system.is_object() ? text_member(system, {"Driver version"}) : std::string();
  for (const auto& [key, card] : json.items()) {
    if (!key.starts_with("card") || !card.is_object()) continue;
    devices.push_back(
        {text_member(card, {"Card Series", "Card series", "Card Model", "Card model"}),
         number_of(text_member(card, {"VRAM Total Memory (B)"})),
         number_of(text_member(card, {"VRAM Total Used Memory (B)"})),
         driver,
         "rocm-smi",
         {}});
  }
  name_in_catalogue(devices);
  return devices;
}

std::vector<LocalDevice> drm_devices(const fs::path& root) {
  std::vector<LocalDevice> devices;
  std::error_code failed;
  for (const auto& entry : fs::directory_iterator(root / "sys/class/drm", failed)) {
    const std::string name = entry.path().filename().string();
    const bool is_card = name.starts_with("card") && name.find('-') == std::string::npos;
    const fs::path folder = entry.path() / "device";
    const auto memory = number_in(folder / "mem_info_vram_total");
    if (!is_card || !memory) continue;
    const std::string product = line_in(folder / "product_name");
    devices.push_back({product.empty() ? "AMD graphics " + line_in(folder / "device") : product,
                       memory,
                       number_in(folder / "mem_info_vram_used"),
                       {},
                       "/sys",
                       {}});
  }
  std::ranges::sort(devices, {}, &LocalDevice::name);
  name_in_catalogue(devices);
  return devices;
}

std::string catalogue_name(std::string_view name, const std::optional<Integer>& memory_bytes) {
  const std::vector<std::string> device = words_of(name);
  std::string best;
  std::size_t most = 0;
  for (const MachineProfile& machine : catalogue_machines()) {
    const std::size_t matching = matching_words(device, machine.name);
    if (matching <= most || (memory_bytes && !is_alike(*memory_bytes, machine))) continue;
    most = matching;
    best = machine.name;
  }
  return best;
}

std::vector<LocalDevice> local_devices() {
  std::vector<LocalDevice> devices =
      parse_nvidia_smi(output_of("nvidia-smi",
                                 "--query-gpu=name,memory.total,memory.used,driver_version "
                                 "--format=csv,noheader,nounits"));
  std::vector<LocalDevice> amd = parse_rocm_smi(
      output_of("rocm-smi", "--showproductname --showmeminfo vram --showdriverversion --json"));
  if (amd.empty()) amd = drm_devices();
  devices.insert(devices.end(), amd.begin(), amd.end());
  return devices;
}

std::vector<LocalEngine> local_engines() {
  std::vector<LocalEngine> engines;
  for (const char* const name : {"llama-bench", "llama-server", "ollama", "vllm", "sglang",
                                 "trtllm-serve", "text-generation-launcher", "mlx_lm.server"}) {
    if (std::string path = found_program(name); !path.empty()) {
      engines.push_back({name, std::move(path)});
    }
  }
  return engines;
}

}  // namespace headroom
