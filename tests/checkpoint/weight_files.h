// Safetensors files made byte by byte, for the tests of their readers.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "headroom/error.h"

namespace headroom::test {

/// A folder of its own for one test, removed at the end.
class TempFolder {
 public:
  TempFolder();
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  ~TempFolder();

  /// The path of a file in the folder.
  [[nodiscard]] std::filesystem::path operator/(const std::string& name) const {
    return path_ / name;
  }
  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }

 private:
  std::filesystem::path path_;
};

void write_file(const std::filesystem::path& path, const std::string& content);

/// A file's bytes: the length of `header`, `header`, `data`.
[[nodiscard]] std::string safetensors_bytes(const std::string& header, const std::string& data);

/// "name":{…}, one tensor's entry in a header; `shape` and `offsets` are JSON.
[[nodiscard]] std::string entry(const std::string& name, const std::string& type,
                                const std::string& shape, const std::string& offsets);

/// The error that `action` throws; fails the test when it throws none.
[[nodiscard]] Error error_of(const std::function<void()>& action);

/// error_of, for what a file from outside causes: checks that it has a message, a hint and exit
/// status 2.
[[nodiscard]] Error input_error_of(const std::function<void()>& action);

/// The tensor that the error of a file of these bytes is about; empty when it is about the file.
/// Fails the test when the bytes are a valid file.
[[nodiscard]] std::string place_of(const std::string& content);

}  // namespace headroom::test
