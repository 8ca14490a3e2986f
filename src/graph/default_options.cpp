#include "default_options.h"

namespace headroom::detail {

std::int64_t default_global_tokens(const ModelSpec& spec) noexcept {
  const auto& global = spec.main_stack().self_attention.global;
  return global && global->by_default == DefaultGlobalTokens::first_token ? 1 : 0;
}

GraphOptions default_options(const ModelSpec& spec, Phase phase,
                             AttentionImplementation attention) noexcept {
  GraphOptions options{phase, attention};
  if (default_global_tokens(spec) > 0) options.global = GlobalTokens::present;
  return options;
}

}  // namespace headroom::detail
