// Harness of the fuzzers: any outcome but success or an input error is a defect.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "headroom/error.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace headroom::test {

/// Runs `action`; false if it rejects its input. Aborts on any other error.
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

/// Inspects a file with these bytes.
void inspect_bytes(const std::uint8_t* data, std::size_t size);

}  // namespace headroom::test
