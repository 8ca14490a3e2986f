#include "weight_formats.h"

#include "module_kind.h"
#include "quantization/formats.h"

namespace headroom::detail {

const std::string& plain_type_of(const ModelSpec& spec) {
  return spec.storage.plain_type.empty() ? spec.torch_dtype : spec.storage.plain_type;
}

WeightFormats::WeightFormats(const ModelSpec& spec, const Graph& graph)
    : graph_(graph), rules_(spec.storage, plain_format(plain_type_of(spec))), names_(spec, graph) {}

const StorageFormat& WeightFormats::of(const Weight& weight, std::int64_t layer) const {
  const MatrixSizes sizes = matrix_sizes(weight, graph_.sizes);
  const RuledWeight ruled{weight.path, module_kind(weight, sizes), sizes.in,
                          names_.of(weight.path)};
  return rules_.format(rules_.format_id(ruled, layer, 0));
}

}  // namespace headroom::detail
