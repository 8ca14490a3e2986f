// Engines that serve and train, and the releases whose options were read.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "headroom/machine_profile.h"

namespace headroom {

/// The first four serve, the others train.
enum class Engine { vllm, sglang, tensorrt_llm, llama_cpp, megatron, torchtitan };

/// An engine, and the release whose options its commands have; tests/data/engines lists them.
struct EngineInfo {
  std::string_view name;
  std::string_view version;
  std::string_view date;    ///< of the release; of a commit without one, of the reading
  std::string_view source;  ///< file or page that has the options
  Engine engine;
  Purpose purpose;
};

[[nodiscard]] std::span<const EngineInfo> engines() noexcept;
[[nodiscard]] const EngineInfo& info(Engine engine) noexcept;

/// "vllm 0.32.0 (2026-10-20)".
[[nodiscard]] std::string release_of(Engine engine);

}  // namespace headroom
