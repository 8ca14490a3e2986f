#include "mapping_guard.h"

#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <mutex>

namespace headroom::checkpoint {
namespace {

/// Addresses of a mapping. The handler reads them at any moment, so all are lock-free.
struct Slot {
  std::atomic<bool> taken{false};
  std::atomic<std::uintptr_t> begin{0};
  std::atomic<std::uintptr_t> end{0};  ///< 0: guards nothing
  std::atomic<bool> lost{false};
};
static_assert(std::atomic<std::uintptr_t>::is_always_lock_free);

std::array<Slot, 4096> g_slots;
struct sigaction g_before {};
std::atomic<std::uintptr_t> g_page_bytes{4096};

extern "C" void on_bus_error(int signal, siginfo_t* info, void* /*context*/) {
  const auto address = reinterpret_cast<std::uintptr_t>(info->si_addr);
  for (Slot& slot : g_slots) {
    const std::uintptr_t end = slot.end;
    if (address < slot.begin || address >= end) continue;
    // A file loses pages at its end, so that all later ones are gone, too.
    const std::uintptr_t into_page = address % g_page_bytes;
    void* const page = static_cast<std::byte*>(info->si_addr) - into_page;
    void* const zeros = mmap(page, end - address + into_page, PROT_READ,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
    if (zeros == MAP_FAILED) break;
    slot.lost = true;
    return;
  }
  // The instruction runs again, under the handler before this one.
  (void)sigaction(signal, &g_before, nullptr);
}

void install_handler() {
  g_page_bytes = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  struct sigaction action {};
  action.sa_sigaction = on_bus_error;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;  // a GEMM's stack pointer may point into the heap
  sigemptyset(&action.sa_mask);
  (void)sigaction(SIGBUS, &action, &g_before);
}

}  // namespace

MappingGuard::MappingGuard(std::span<const std::byte> pages) : slot_(kNoSlot) {
  static std::once_flag installed;
  std::call_once(installed, install_handler);
  for (std::size_t i = 0; i < g_slots.size(); ++i) {
    Slot& slot = g_slots[i];
    if (slot.taken.exchange(true)) continue;
    slot_ = i;
    slot.lost = false;
    slot.begin = reinterpret_cast<std::uintptr_t>(pages.data());
    slot.end = slot.begin + pages.size();
    return;
  }
}

MappingGuard::~MappingGuard() {
  if (slot_ == kNoSlot) return;
  g_slots[slot_].end = 0;
  g_slots[slot_].taken = false;
}

bool MappingGuard::lost_pages() const noexcept { return slot_ != kNoSlot && g_slots[slot_].lost; }

}  // namespace headroom::checkpoint
