// Types that llama.cpp's quantize gives to each tensor of a model.
#pragma once

#include <optional>
#include <string_view>

#include "ggml_type.h"
#include "headroom/model_spec.h"

namespace headroom::detail {

/// Mixes of quantize: one type for most matrices, more bits for some.
enum class GgufMix {
  q8_0,
  q6_k,
  q5_k_m,
  q4_k_m,
  q4_0,
  q4_1,
  q5_0,
  q5_1,
  q2_k,
  q3_k_m,
  iq4_nl,
  iq4_xs,
};

/// A matrix in blocks of a ggml type.
[[nodiscard]] StorageFormat ggml_format(checkpoint::GgmlType type);

/// The type of which `format` is the name: ggml_format() and files give their formats ggml's own
/// names, which no other format has. Block sizes do not tell types apart: Q4_0 and IQ4_NL have the
/// same.
[[nodiscard]] std::optional<checkpoint::GgmlType> ggml_type_of(std::string_view format);

/// The rules of `mix` for `spec`, without an importance matrix. What no rule names is float32:
/// norms, biases, routers, tables of positions (convert_hf_to_gguf.py, prepare_tensors). Source:
/// llama_tensor_get_type_impl and tensor_type_fallback in src/llama-quant.cpp,
/// github.com/ggml-org/llama.cpp at 007dbbf.
[[nodiscard]] WeightStorage gguf_storage(const ModelSpec& spec, GgufMix mix);

}  // namespace headroom::detail
