// Safetensors files built byte by byte, for tests of the readers.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "headroom/error.h"

namespace headroom::test {

/// A temporary folder for one test, deleted at the end.
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

/// The bytes of a file: length of `header`, `header`, `data`.
[[nodiscard]] std::string safetensors_bytes(const std::string& header, const std::string& data);

/// "name":{…}, one tensor's entry in a header; `shape` and `offsets` are JSON.
[[nodiscard]] std::string entry(const std::string& name, const std::string& type,
                                const std::string& shape, const std::string& offsets);

/// The error that `action` throws; fails the test if it throws none.
[[nodiscard]] Error error_of(const std::function<void()>& action);

/// error_of for errors in input files: checks for a message, a hint, and the code of bad input or
/// of a file that cannot be read.
[[nodiscard]] Error input_error_of(const std::function<void()>& action);

/// The tensor in the error from a file with these bytes; empty if the error is about the file.
/// Fails the test if the bytes are a valid file.
[[nodiscard]] std::string place_of(const std::string& content);

}  // namespace headroom::test
