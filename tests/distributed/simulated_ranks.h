// Ranks without processes, to test what they tell each other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "communicator.h"

namespace headroom::test {

/// One rank of several. The texts of all lie in `texts`: exchange and gather put this rank's there,
/// so that ranks that call them one after the other, rank 0 last, meet as processes do.
class SimulatedRank final : public measured::Coordinator {
 public:
  SimulatedRank(std::vector<std::string>& texts, std::size_t rank) : texts_(texts), rank_(rank) {}

  [[nodiscard]] std::int64_t size() const override { return std::ssize(texts_); }
  [[nodiscard]] std::int64_t rank() const override { return static_cast<std::int64_t>(rank_); }
  [[nodiscard]] std::vector<std::string> exchange(const std::string& text) override {
    texts_[rank_] = text;
    return texts_;
  }
  [[nodiscard]] std::vector<std::string> gather(const std::string& text) override {
    texts_[rank_] = text;
    return rank_ == 0 ? texts_ : std::vector<std::string>();
  }
  void barrier() override { refuse(); }
  void broadcast(std::span<std::int64_t> /*values*/, std::int64_t /*root*/) override { refuse(); }
  void send(const std::string& /*text*/, std::int64_t /*to*/) override { refuse(); }
  [[nodiscard]] std::string receive(std::int64_t /*from*/) override { refuse(); }

 private:
  [[noreturn]] static void refuse() { throw std::logic_error("these ranks run no models"); }

  std::vector<std::string>& texts_;
  std::size_t rank_;
};

}  // namespace headroom::test
