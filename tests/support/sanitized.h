// How a test is built.
#pragma once

#include <cstddef>

namespace headroom::test {

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HEADROOM_TEST_SANITIZED true
#endif
#endif
#if !defined(HEADROOM_TEST_SANITIZED)
#define HEADROOM_TEST_SANITIZED false
#endif

/// True with sanitizers, which slow down a test tenfold: those of many figures, computed by code
/// that other tests run, are skipped.
inline constexpr bool kSanitized = HEADROOM_TEST_SANITIZED;

/// The step of a loop over many models: every model, or with sanitizers every eighth, whose code is
/// that of the others.
inline constexpr std::size_t kModelStep = kSanitized ? 8 : 1;

}  // namespace headroom::test
