// What a fuzzer calls with bytes from outside: anything but an error about them is a defect.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "headroom/error.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace headroom::test {

/// Runs `action`; false when it refuses its input. Ends the process for any other error.
template <class Action>
bool accepts(Action action) {
  try {
    action();
  } catch (const Error& error) {
    const bool about_input =
        error.code() == ErrorCode::invalid_input || error.code() == ErrorCode::overflow;
    if (!about_input || error.message().empty()) std::abort();
    return false;
  }
  return true;
}

/// Runs inspect on a file of these bytes.
void inspect_bytes(const std::uint8_t* data, std::size_t size);

}  // namespace headroom::test
