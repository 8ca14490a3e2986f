#include "interruption.h"

#include <unistd.h>

#include <array>
#include <atomic>
#include <climits>
#include <csignal>
#include <cstddef>
#include <cstring>

namespace headroom::detail {
namespace {

constexpr std::array kEndSignals{SIGINT, SIGTERM, SIGHUP};

// A handler may touch lock-free atomics and memory that they publish, and call unlink.
std::atomic<int> g_interruption{0};
std::atomic<bool> g_ends_at_next_step{false};
static_assert(std::atomic<int>::is_always_lock_free && std::atomic<bool>::is_always_lock_free);

enum class SlotState { free, claimed, holds_path };

struct PathSlot {
  std::atomic<SlotState> state{SlotState::free};
  std::array<char, PATH_MAX> path{};
};
std::array<PathSlot, 4> g_paths;

extern "C" void on_end_signal(int signal) {
  int none = 0;
  if (g_ends_at_next_step && g_interruption.compare_exchange_strong(none, signal)) return;
  for (const PathSlot& slot : g_paths) {
    if (slot.state == SlotState::holds_path) unlink(slot.path.data());
  }
  std::signal(signal, SIG_DFL);
  (void)std::raise(signal);
}

/// Gives this thread a stack of its own for handlers. oneDNN's GEMMs for AVX2 and AVX-512 let the
/// stack pointer point into the heap (uxlfoundation/oneDNN issue 4845): a handler that ran there
/// would overwrite the heap. The kernel delivers signals of a process to its first thread.
void use_handler_stack() {
  static std::array<std::byte, std::size_t{64} << 10>
      stack{};  // a frame with AMX tiles takes 11 KiB
  stack_t before{};
  if (sigaltstack(nullptr, &before) != 0 || (before.ss_flags & SS_DISABLE) == 0) return;
  stack_t own{};
  own.ss_sp = stack.data();
  own.ss_size = stack.size();
  (void)sigaltstack(&own, nullptr);
}

}  // namespace

void handle_end_signals() {
  use_handler_stack();
  for (const int signal : kEndSignals) {
    struct sigaction before {};
    if (sigaction(signal, nullptr, &before) != 0 || before.sa_handler == SIG_IGN) continue;
    struct sigaction action {};
    action.sa_handler = on_end_signal;
    action.sa_flags = SA_ONSTACK;  // without SA_RESTART: waiting for a pipe ends, too
    sigemptyset(&action.sa_mask);
    (void)sigaction(signal, &action, nullptr);
  }
}

void end_at_next_step() noexcept { g_ends_at_next_step = true; }

int interruption() noexcept { return g_interruption; }

void throw_if_interrupted() {
  if (interruption() != 0) throw Interrupted();
}

RemovedOnSignal::RemovedOnSignal(const std::string& path) noexcept : slot_(-1) {
  if (path.size() >= PATH_MAX) return;
  for (std::size_t i = 0; i < g_paths.size(); ++i) {
    SlotState expected = SlotState::free;
    if (!g_paths[i].state.compare_exchange_strong(expected, SlotState::claimed)) continue;
    std::memcpy(g_paths[i].path.data(), path.c_str(), path.size() + 1);
    g_paths[i].state = SlotState::holds_path;
    slot_ = static_cast<int>(i);
    return;
  }
}

RemovedOnSignal::~RemovedOnSignal() {
  if (slot_ >= 0) g_paths[static_cast<std::size_t>(slot_)].state = SlotState::free;
}

}  // namespace headroom::detail
