// Models in a folder, by the names and sizes of its files.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string_view>
#include <system_error>

#include "model_files.h"
#include "stores.h"

namespace headroom::detail {
namespace {

namespace fs = std::filesystem;

/// Bytes of weight files in one format, and their number.
struct FileSum {
  std::int64_t bytes = 0;
  int files = 0;

  void add(std::int64_t size) {
    bytes += size;
    ++files;
  }
};

/// A GGUF file, or the first of a split with the bytes of all.
struct GgufModel {
  fs::path path;
  std::int64_t bytes = 0;
};

/// The part of diffusers' pipelines that headroom reads.
constexpr std::string_view kDenoiser = "transformer/";

class FolderReader {
 public:
  FolderReader(std::string name, ModelStore store, LocalModels& local)
      : name_(std::move(name)), store_(store), local_(local) {}

  void read(const fs::path& folder) {
    read_files(folder, "");
    add_gguf_models();
    add_config_model(folder);
  }

 private:
  /// Quantisations of one model may lie in folders of their own.
  void read_files(const fs::path& folder, const std::string& prefix) {
    std::error_code failed;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder, failed)) {
      const std::string file = entry.path().filename().string();
      std::error_code unknown;
      if (entry.is_directory(unknown)) {
        if (prefix.empty()) read_files(entry.path(), file + "/");
        continue;
      }
      const auto size = fs::file_size(entry.path(), unknown);
      if (unknown) {
        local_.problems.push_back(
            {name_, fmt::format("{} is a link to a missing file", entry.path().string())});
      } else {
        add_file(entry.path(), prefix, static_cast<std::int64_t>(size));
      }
    }
  }

  void add_file(const fs::path& path, const std::string& prefix, std::int64_t size) {
    const std::string file = path.filename().string();
    const std::string extension = path.extension().string();
    if (extension == ".gguf") {
      if (checkpoint::is_gguf_model(file)) add_gguf_file(path, prefix + file, size);
    } else if (!prefix.empty()) {
      if (prefix == kDenoiser && extension == ".safetensors") denoiser_.add(size);
    } else if (extension == ".safetensors") {
      (file.starts_with("consolidated") ? consolidated_ : safetensors_).add(size);
    } else if (file.starts_with("pytorch_model") && extension == ".bin") {
      pytorch_.add(size);
    } else if (file == "model_index.json") {
      is_pipeline_ = true;
    } else if (file == "config.json" || file == "adapter_config.json") {
      has_config_ = true;
    }
  }

  void add_gguf_file(const fs::path& path, const std::string& name, std::int64_t size) {
    const auto part = checkpoint::part_name(name);
    GgufModel& model = gguf_[part ? part->before + part->after : name];
    model.bytes += size;
    if (!part || part->number == "00001") model.path = path;
  }

  void add(std::string name, LocalFormat format, const fs::path& path, std::int64_t bytes) {
    local_.models.push_back({std::move(name), store_, format, path.string(), bytes});
  }

  void add_gguf_models() {
    const bool only_one = gguf_.size() == 1 && tensors().files == 0 && pytorch_.files == 0;
    for (const auto& [file, model] : gguf_) {
      if (model.path.empty()) {
        local_.problems.push_back({name_, "lacks the first file of " + file});
        continue;
      }
      const fs::path first = model.path.filename();
      const std::string folder = file.substr(0, file.find_last_of('/') + 1);
      add(only_one ? name_ : name_ + "/" + folder + first.string(), LocalFormat::gguf, model.path,
          model.bytes);
    }
  }

  /// Mistral's repositories hold the weights twice, once in its own form.
  [[nodiscard]] const FileSum& tensors() const {
    return safetensors_.files > 0 ? safetensors_ : consolidated_;
  }

  void add_config_model(const fs::path& folder) {
    if (is_pipeline_) {
      add(name_, LocalFormat::config, folder, denoiser_.bytes);
    } else if (tensors().files > 0) {
      add(name_, LocalFormat::safetensors, folder, tensors().bytes);
    } else if (has_config_ && pytorch_.files > 0) {
      add(name_, LocalFormat::pytorch, folder, pytorch_.bytes);
    } else if (has_config_ && gguf_.empty()) {
      add(name_, LocalFormat::config, folder, 0);
    }
  }

  std::string name_;
  ModelStore store_;
  LocalModels& local_;
  std::map<std::string, GgufModel> gguf_;  ///< by name, without the number of a part
  FileSum safetensors_;
  FileSum consolidated_;
  FileSum pytorch_;
  FileSum denoiser_;  ///< of a pipeline
  bool has_config_ = false;
  bool is_pipeline_ = false;
};

}  // namespace

void add_model_folder(const fs::path& folder, const std::string& name, ModelStore store,
                      LocalModels& local) {
  FolderReader(name, store, local).read(folder);
}

}  // namespace headroom::detail
