// Processor time that other programs use while this one measures. Internal to src/measured.
#pragma once

#include <optional>

namespace headroom::measured {

class CpuWatch {
 public:
  CpuWatch();

  /// Processors that other programs used since construction, on average, time stolen by a
  /// hypervisor included; empty if the system does not report it or no time has passed. Processes
  /// of the same run, which used `partners_s` seconds, are none.
  [[nodiscard]] std::optional<double> other_programs_cpus(double partners_s = 0) const;

  /// Seconds of processor time that this process used since construction; 0 if unknown.
  [[nodiscard]] double own_s() const;

 private:
  /// Seconds of processor time.
  struct Reading {
    double busy_s = 0;  ///< of all programs
    double idle_s = 0;
    double own_s = 0;
  };
  [[nodiscard]] static std::optional<Reading> read();

  std::optional<Reading> start_;
};

}  // namespace headroom::measured
