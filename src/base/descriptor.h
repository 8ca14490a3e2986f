// File descriptors.
#pragma once

#include <unistd.h>

#include <utility>

namespace headroom::detail {

/// An open file, or none; closed at the end.
class Descriptor {
 public:
  /// Takes the result of `open`: a number, or -1.
  explicit Descriptor(int number) noexcept : number_(number) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (is_open()) close(number_);
  }

  [[nodiscard]] bool is_open() const noexcept { return number_ >= 0; }
  [[nodiscard]] int number() const noexcept { return number_; }
  /// Closes the file. Returns whether all of it was written.
  [[nodiscard]] bool close_now() noexcept { return close(std::exchange(number_, -1)) == 0; }

 private:
  int number_;
};

}  // namespace headroom::detail
