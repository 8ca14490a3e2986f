// A file for readers that take a path.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>

namespace headroom::test {

/// An empty folder, in memory if possible, deleted when the process ends.
[[nodiscard]] const std::filesystem::path& temporary_folder();

/// Makes it the current folder and the home of all stores; standard input and output go nowhere.
void move_to_temporary_folder();

/// A file of this name and these bytes in it; the next call may replace it.
[[nodiscard]] std::filesystem::path temporary_file(const std::uint8_t* data, std::size_t size,
                                                   const char* name);

}  // namespace headroom::test
