// Types that llama.cpp's quantize gives to each tensor of a model.
#pragma once

#include <optional>
#include <string_view>

#include "ggml_type.h"
#include "headroom/model_spec.h"
#include "headroom/workload.h"

namespace headroom::detail {

/// A matrix in blocks of a ggml type.
[[nodiscard]] StorageFormat ggml_format(checkpoint::GgmlType type);

/// The type of which `format` is the name: ggml_format() and files give their formats ggml's own
/// names, which no other format has. Block sizes do not tell types apart: Q4_0 and IQ4_NL have the
/// same.
[[nodiscard]] std::optional<checkpoint::GgmlType> ggml_type_of(std::string_view format);

/// The rules of `mix` for `spec`, without an importance matrix. A mix of quantize, `q8_0` to
/// `iq4_xs`, has one type for most matrices and more bits for some. What no rule names is float32:
/// norms, biases, routers, tables of positions (convert_hf_to_gguf.py, prepare_tensors). Throws
/// Error{internal} for a type that is no mix. Source: llama_tensor_get_type_impl and
/// tensor_type_fallback in src/llama-quant.cpp, github.com/ggml-org/llama.cpp at 007dbbf.
[[nodiscard]] WeightStorage gguf_storage(const ModelSpec& spec, WeightType mix);

}  // namespace headroom::detail
