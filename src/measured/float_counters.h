// Floating-point operations that the processor's own counters retire. Internal to src/measured.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace headroom::measured {

/// A raw event of a processor, and the operations that one count of it stands for.
struct FloatEvent {
  std::uint64_t config = 0;  ///< event in the low 8 bits, unit mask in the next 8
  double operations = 1;
};

/// Events whose weighted sum is the processor's float32 operations, a fused multiply–add counting
/// as 2; empty for processors without. `cpuinfo` is the text of /proc/cpuinfo.
[[nodiscard]] std::vector<FloatEvent> float_events(const std::string& cpuinfo);

/// Counts of this thread, and of all threads that it starts after the construction.
class FloatCounters {
 public:
  FloatCounters();
  FloatCounters(const FloatCounters&) = delete;
  FloatCounters& operator=(const FloatCounters&) = delete;
  FloatCounters(FloatCounters&&) = delete;
  FloatCounters& operator=(FloatCounters&&) = delete;
  ~FloatCounters();

  /// Operations retired since construction; empty if nothing is counted.
  [[nodiscard]] std::optional<double> operations() const;

  /// Why nothing is counted; empty if something is.
  [[nodiscard]] const std::string& refusal() const noexcept { return refusal_; }

 private:
  struct Counter {
    int file = -1;
    double operations = 1;
  };

  void open(const std::vector<FloatEvent>& events);

  std::vector<Counter> counters_;
  std::string refusal_;
};

}  // namespace headroom::measured
