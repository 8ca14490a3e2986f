// Times of collectives: interpolation, the choice of a table, and the profile's format.
#include <doctest/doctest.h>

#include <cmath>

#include "headroom/collective_rates.h"
#include "headroom/error.h"
#include "headroom/machine_profile.h"
#include "support/data.h"
#include "support/scratch.h"

using namespace headroom;

namespace {

CollectiveTable table_of_pair(CollectiveKind kind) {
  return {kind, {2, 2, 1}, {{1000, 0.25, 0.01}, {100'000, 2.5, 0.02}}};
}

CollectiveRates rates_of_pair() {
  CollectiveRates rates{"2025-01-01", "a library 1.0", {}};
  for (const CollectiveKind kind : measured_collectives()) {
    rates.tables.push_back(table_of_pair(kind));
  }
  return rates;
}

/// A catalogue's machine, whose rates do not matter here.
MachineProfile machine_with(const CollectiveRates& rates) {
  MachineProfile machine = find_machine("h100-80gb");
  machine.collectives = rates;
  return machine;
}

/// The refusal of a profile with another text among its collectives.
std::string refusal_with(const std::string& from, const std::string& to) {
  std::string text = profile_to_json(machine_with(rates_of_pair()));
  const auto at = text.find(from, text.rfind("\"collectives\""));
  REQUIRE(at != std::string::npos);
  text.replace(at, from.size(), to);
  try {
    (void)profile_from_json(text, "profile.json");
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

bool says(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::string hint_without_table(const CollectiveGroups& groups) {
  try {
    (void)table_of(rates_of_pair(), CollectiveKind::all_reduce, groups);
  } catch (const Error& error) {
    return error.hint();
  }
  return {};
}

}  // namespace

TEST_CASE("a collective between two payloads takes a time between theirs, on a power law") {
  const CollectiveTable table = table_of_pair(CollectiveKind::all_reduce);
  // 10 times the time for 100 times the bytes: a square root.
  CHECK(seconds_of(table, 10'000) == doctest::Approx(0.25 * std::sqrt(10.0)));
  CHECK(seconds_of(table, 1000) == doctest::Approx(0.25));
  CHECK(seconds_of(table, 100'000) == doctest::Approx(2.5));
}

TEST_CASE("small payloads take the time of a call, large ones the link's bandwidth") {
  const CollectiveTable table = table_of_pair(CollectiveKind::send);
  CHECK(seconds_of(table, 1) == doctest::Approx(0.25));
  CHECK(seconds_of(table, 400'000) == doctest::Approx(10));
}

TEST_CASE("a collective of other groups is no substitute, and the error says what to run") {
  CHECK(table_of(rates_of_pair(), CollectiveKind::send, {2, 2, 1}).kind == CollectiveKind::send);
  CHECK(says(hint_without_table({4, 2, 1}), "between 4 processes"));
  CHECK(says(hint_without_table({2, 2, 2}), "on the same hosts"));
}

TEST_CASE("a newer measurement replaces the tables of its groups, and keeps the others") {
  CollectiveRates newer{"2026-01-01", "a library 2.0", {table_of_pair(CollectiveKind::send)}};
  newer.tables.front().points.front().seconds = 3;
  const CollectiveRates all = merged(rates_of_pair(), newer);
  CHECK(all.tables.size() == 5);
  CHECK(all.date == "2026-01-01");
  const auto smallest = [&](CollectiveKind kind) {
    return table_of(all, kind, {2, 2, 1}).points.front().seconds;
  };
  CHECK(smallest(CollectiveKind::send) == doctest::Approx(3));
  CHECK(smallest(CollectiveKind::all_gather) == doctest::Approx(0.25));
}

TEST_CASE(
    "collectives of a profile survive the round trip through JSON, and bad ones are refused") {
  const std::string text = profile_to_json(machine_with(rates_of_pair()));
  CHECK(profile_to_json(profile_from_json(text, "profile.json")) == text);
  CHECK(says(refusal_with("all_gather", "all_chatter"), "no measured collective"));
  CHECK(says(refusal_with("all_gather", "all_reduce"), "repeats"));
  CHECK(says(refusal_with("\"ranks\": 2", "\"ranks\": 3"), "divides"));
  CHECK(says(refusal_with("\"hosts\": 1", "\"hosts\": 0"), "hosts"));
  CHECK(says(refusal_with("0.25", "-0.25"), "seconds"));
  CHECK(says(refusal_with("\"bytes\": 1000,", "\"bytes\": 200000,"), "ascending"));
}

TEST_CASE("a new calibration keeps the collectives of the one before") {
  const test::ScratchFolder folder;
  const test::ScratchVariable data("XDG_DATA_HOME", folder.path().string());
  const MachineProfile machine = machine_with(rates_of_pair());
  (void)store_extended_profile(machine, "eigen");
  MachineProfile again = machine;
  again.collectives.reset();
  CHECK(store_own_profile(again, "eigen").kept_because.empty());
  const auto stored = load_own_profile("eigen", machine.context);
  REQUIRE(stored);
  REQUIRE(stored->collectives);
  CHECK(stored->collectives->tables.size() == 5);
}
