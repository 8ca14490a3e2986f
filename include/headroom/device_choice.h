// The devices that hold a model: for every machine and type of weights the fewest devices, the
// fastest plan on them, and their price.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "headroom/fewest_devices.h"
#include "headroom/machine_profile.h"
#include "headroom/plan.h"

namespace headroom {

/// A served model, the machines to try, and the types to store its weights in.
struct DeviceQuestion {
  Model model;
  /// Of the weights as stored: `weights` is empty, and `arithmetic` is that of their types.
  PlanQuery query;
  std::optional<DType> arithmetic;  ///< of the layers' GEMMs with converted weights
  Load load;
  WorkloadImages images;  ///< of one sequence
  WorkloadAudio audio;    ///< of one sequence
  /// To try; an empty one: as stored. Of further ones, those that save a tenth of its bytes stay.
  std::vector<std::optional<WeightForm>> weights;
  std::vector<MachineProfile> machines;
  std::int64_t most_devices = 8;              ///< of one machine
  std::map<std::string, double> hour_prices;  ///< of one device, by machine, in any currency
  std::vector<std::string> notes;             ///< on the model
};

/// The fastest plan on the fewest devices that hold a model.
struct FewestDevices {
  PlanChoice choice;
  Integer memory_bytes = 0;  ///< of the worst rank
  PlanTime time;
  /// Of all devices; empty without a price.
  std::optional<double> price_per_hour;
  std::optional<double> price_per_million_tokens;  ///< of a decoder, at `time.tokens_per_s`
};

/// One machine. `fewest` has an entry for each of DeviceQuestion::weights, empty where more than
/// the most devices are needed.
struct DeviceRow {
  std::string machine;
  Integer memory_bytes = 0;  ///< of one device, by the driver
  std::vector<std::optional<FewestDevices>> fewest;
};

/// `headroom fit` without a machine.
struct DeviceChoiceReport {
  DeviceQuestion question;
  std::vector<DeviceRow> rows;  ///< fewest devices first, then the fastest, by stored weights
  std::vector<std::string> too_small;  ///< machines that hold no type of weights
  std::vector<std::string> notes;
};

/// True if the machine holds the first type of weights that the question names.
[[nodiscard]] bool holds_first_type(const DeviceRow& row) noexcept;
/// True if a machine does: the report's verdict.
[[nodiscard]] bool any_holds_first_type(const DeviceChoiceReport& report) noexcept;

/// The fewest devices of each machine. Throws Error{invalid_input} for training, without machines,
/// and for a price of a machine that is not among them.
[[nodiscard]] DeviceChoiceReport make_device_choice_report(DeviceQuestion question);

}  // namespace headroom
