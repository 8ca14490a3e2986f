// Chooses the kernels of the widest instruction set that the processor and its system support,
// before any static object can call one. LinkKernelVariants.cmake writes the tables.
#include <cstddef>
#include <cstring>

#if defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

extern "C" {
using Kernel = void (*)();
/// Called through .init_array of the stubs.
void headroom_choose_kernels();
extern const std::size_t headroom_kernel_count;
extern Kernel headroom_chosen_kernels[];
}

#if defined(__x86_64__)

extern "C" {
extern const Kernel headroom_kernels_x86_64_v1[];
extern const Kernel headroom_kernels_x86_64_v3[];
extern const Kernel headroom_kernels_x86_64_v4_vnni[];
}

namespace {

const Kernel* widest_kernels() {
  // The compiler's check includes that the system saves the wide registers.
  __builtin_cpu_init();
  const bool has_vnni = __builtin_cpu_supports("x86-64-v4") != 0 &&
                        __builtin_cpu_supports("avx512vnni") != 0 &&
                        __builtin_cpu_supports("clflushopt") != 0;
  if (has_vnni) return headroom_kernels_x86_64_v4_vnni;
  return __builtin_cpu_supports("x86-64-v3") != 0 ? headroom_kernels_x86_64_v3
                                                  : headroom_kernels_x86_64_v1;
}

}  // namespace

#elif defined(__aarch64__)

extern "C" {
extern const Kernel headroom_kernels_aarch64_v8[];
extern const Kernel headroom_kernels_aarch64_sdot[];
extern const Kernel headroom_kernels_aarch64_usdot[];
}

namespace {

const Kernel* widest_kernels() {
  // Armv8.2-A, whose instructions compilers use freely, and the dot products beside it.
  constexpr unsigned long kSdot = HWCAP_CRC32 | HWCAP_ATOMICS | HWCAP_ASIMDRDM | HWCAP_ASIMDDP;
  if ((getauxval(AT_HWCAP) & kSdot) != kSdot) return headroom_kernels_aarch64_v8;
  return (getauxval(AT_HWCAP2) & HWCAP2_I8MM) != 0 ? headroom_kernels_aarch64_usdot
                                                   : headroom_kernels_aarch64_sdot;
}

}  // namespace

#endif

void headroom_choose_kernels() {
  std::memcpy(headroom_chosen_kernels, widest_kernels(), headroom_kernel_count * sizeof(Kernel));
}
