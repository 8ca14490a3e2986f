#include "kv_groups.h"

#include <fmt/format.h>

#include <algorithm>

#include "headroom/error.h"
#include "setting_format.h"

namespace headroom::detail {
namespace {

// Blocks that raise to a recurrent state's page are multiples of 16 tokens, the granularity of the
// attention kernels: HybridAttentionMambaModelConfig in vllm/model_executor/models/config.py.
constexpr Integer kKernelBlock = 16;

bool is_state(const PagedLayers& row) { return row.query.growth == KvGrowth::constant; }

/// Returns whether two rows have one KVCacheSpec, and so share groups.
bool same_kind(const PagedLayers& a, const PagedLayers& b) {
  return a.query.growth == b.query.growth && a.query.window == b.query.window &&
         a.token_bytes == b.token_bytes && a.state_bytes == b.state_bytes;
}

Integer layers_of_kind(std::span<const PagedLayers> rows, const PagedLayers& like) {
  Integer layers = 0;
  for (const PagedLayers& row : rows) {
    layers += same_kind(row, like) ? row.layers + row.drafter_layers : 0;
  }
  return layers;
}

bool is_first_of_kind(std::span<const PagedLayers> rows, std::size_t index) {
  const auto before = rows.first(index);
  return std::ranges::none_of(before,
                              [&](const PagedLayers& row) { return same_kind(row, rows[index]); });
}

/// Tokens per block of the widest attention layers: enough for a page to contain the largest
/// recurrent state.
Integer block_of_widest(const ResolvedPolicy& policy, std::span<const PagedLayers> rows,
                        Integer widest) {
  Integer state = 0;
  for (const PagedLayers& row : rows) state = std::max(state, row.state_bytes);
  const Integer least = kKernelBlock * ceil_div(state, checked_multiply(kKernelBlock, widest));
  return std::max(policy.block, least);
}

/// Tokens per page of a row. Layers of fewer bytes per token have larger blocks, so that all pages
/// are of equal size (unify_kv_cache_spec_page_size).
Integer block_of(const PagedLayers& row, Integer page_bytes, const ModelSpec& spec) {
  if (is_state(row)) return 0;
  if (page_bytes % row.token_bytes != 0) {
    throw_invalid_input(
        fmt::format("vllm cannot give layers of {} and {} bytes per token pages of equal size, as "
                    "in {}",
                    to_string(row.token_bytes), to_string(page_bytes), spec.name),
        fmt::format("choose {} ideal or paged", Setting::kv_policy));
  }
  return page_bytes / row.token_bytes;
}

LayerPages pages_of(const ResolvedPolicy& policy, const PagedLayers& row, Integer block,
                    const ModelSpec& spec) {
  LayerPages pages;
  pages.block = block;
  pages.more_layers = row.drafter_layers;
  if (is_state(row)) {
    pages.steady_pages = 1 + policy.speculative_tokens;
    pages.reserved_pages = policy.state_blocks;
    return pages;
  }
  ResolvedPolicy own = policy;
  own.block = block;
  const Cells cells = cells_of(own, row.query, spec);
  pages.steady_pages = cells.steady / block;
  pages.reserved_pages = cells.reserved / block;
  return pages;
}

}  // namespace

Integer vllm_group_size(Integer fewest_layers, Integer most_layers) {
  const bool about_equal = 2 * most_layers < 3 * fewest_layers;
  return about_equal ? most_layers : fewest_layers;
}

bool is_hybrid(std::span<const PagedLayers> rows) {
  const auto differs = [&](const PagedLayers& row) {
    return row.query.growth != rows.front().query.growth ||
           row.query.window != rows.front().query.window;
  };
  return std::ranges::any_of(rows, differs);
}

std::vector<LayerPages> vllm_pages(const ResolvedPolicy& policy, std::span<const PagedLayers> rows,
                                   const ModelSpec& spec) {
  std::vector<LayerPages> result;
  if (!is_hybrid(rows)) {
    for (const PagedLayers& row : rows) {
      result.push_back(pages_of(policy, row, policy.block, spec));
      result.back().page_bytes =
          is_state(row) ? row.state_bytes : checked_multiply(policy.block, row.token_bytes);
    }
    return result;
  }
  Integer widest = 0;
  for (const PagedLayers& row : rows) widest = std::max(widest, row.token_bytes);
  const Integer page = checked_multiply(block_of_widest(policy, rows, widest), widest);
  Integer fewest = layers_of_kind(rows, rows.front());
  Integer most = fewest;
  for (const PagedLayers& row : rows) {
    fewest = std::min(fewest, layers_of_kind(rows, row));
    most = std::max(most, layers_of_kind(rows, row));
  }
  const Integer size = vllm_group_size(fewest, most);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    LayerPages pages = pages_of(policy, rows[i], block_of(rows[i], page, spec), spec);
    pages.page_bytes = page;
    const Integer layers = layers_of_kind(rows, rows[i]);
    if (is_first_of_kind(rows, i)) pages.more_layers += round_up(layers, size) - layers;
    result.push_back(pages);
  }
  return result;
}

}  // namespace headroom::detail
