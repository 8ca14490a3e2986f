// The parts of oneDNN's C++ interface that differ between versions 2 and 3. The only place that
// tests the version.
#pragma once

#include <oneapi/dnnl/dnnl.hpp>

namespace headroom::measured::onednn {

#if DNNL_VERSION_MAJOR >= 3

/// Describes a primitive. `arguments` are those of its operation: a propagation kind if it has
/// one, then memory descriptors.
template <class Primitive, class... Arguments>
[[nodiscard]] typename Primitive::primitive_desc describe(const dnnl::engine& engine,
                                                          const dnnl::primitive_attr& attributes,
                                                          const Arguments&... arguments) {
  return {engine, arguments..., attributes};
}

/// Appends an element-wise function with its parameter `alpha`.
inline void append_eltwise(dnnl::post_ops& operations, dnnl::algorithm algorithm, float alpha) {
  operations.append_eltwise(algorithm, alpha, 0.0F);
}

#else

template <class Primitive, class... Arguments>
[[nodiscard]] typename Primitive::primitive_desc describe(const dnnl::engine& engine,
                                                          const dnnl::primitive_attr& attributes,
                                                          const Arguments&... arguments) {
  return {typename Primitive::desc(arguments...), attributes, engine};
}

inline void append_eltwise(dnnl::post_ops& operations, dnnl::algorithm algorithm, float alpha) {
  operations.append_eltwise(1.0F, algorithm, alpha, 0.0F);
}

#endif

}  // namespace headroom::measured::onednn
