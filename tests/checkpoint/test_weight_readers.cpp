// Readers of stored tensors by name: what they say about tensors that a file lacks, and parts of
// tensors.
#include <doctest/doctest.h>

#include <limits>
#include <numeric>

#include "checkpoint/packed_files.h"
#include "headroom/error.h"
#include "support/data.h"
#include "support/gguf_writer.h"

using namespace headroom;
using namespace headroom::test;
using headroom::checkpoint::GgmlType;
using headroom::checkpoint::StoredType;
using headroom::detail::StoredOrder;
using headroom::detail::WeightReader;

namespace {

using Reader = std::unique_ptr<WeightReader>;

/// Values 0 to 11, [3, 4], as "x.weight".
Reader counted_safetensors(const ScratchFolder& folder) {
  std::vector<float> values(12);
  std::iota(values.begin(), values.end(), 0.0F);
  const auto file = folder.path() / "model.safetensors";
  checkpoint::write_safetensors(
      file, std::vector{checkpoint::float32_tensor("x.weight", {3, 4}, values)});
  return detail::read_checkpoint(checkpoint::Checkpoint(file));
}

ModelSpec llama_spec() {
  return spec_of({{"model_type", "llama"},
                  {"hidden_size", 8},
                  {"num_attention_heads", 2},
                  {"num_hidden_layers", 1},
                  {"intermediate_size", 16},
                  {"vocab_size", 32}});
}

/// Equal values in GGUF, and two experts "y.weight" of half of them.
Reader counted_gguf(const ScratchFolder& folder) {
  std::string bytes;
  for (int i = 0; i < 12; ++i) bytes += bytes_of(static_cast<float>(i));
  const auto file = folder.write("model.gguf", small_llama_metadata()
                                                   .tensor("x.weight", {3, 4}, GgmlType::f32, bytes)
                                                   .tensor("y.weight", {2, 6}, GgmlType::f32, bytes)
                                                   .str());
  return detail::read_gguf(file, llama_spec());
}

/// FP8 of 1, [2, 8], with a scale of 2, and the experts `e` of MXFP4, [2, 32, 2].
std::unique_ptr<ScratchFolder> packed_of_both_orders() {
  const std::vector<float> two{2};
  return packed_folder({filled_with(0x38, "x.weight", StoredType::float8_e4m3, {2, 8}),
                        checkpoint::float32_tensor("x.weight_scale", {}, two),
                        filled_with(0x22, "e_blocks", StoredType::uint8, {2, 2, 1, 16}),
                        filled_with(0x7f, "e_scales", StoredType::uint8, {2, 2, 1}),
                        filled_with(0, "norm.weight", StoredType::float32, {8})});
}

/// The message of the Error{internal} that `call` throws.
template <class Call>
std::string internal_error(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::internal);
    return error.message();
  }
  return {};
}

void check_missing(const WeightReader& reader) {
  std::vector<float> out(4);
  CHECK_FALSE(reader.shape("none"));
  CHECK_FALSE(reader.ggml_type("none"));
  CHECK_FALSE(reader.group_format("none"));
  CHECK_FALSE(reader.file_bytes("none"));
  CHECK(reader.type_name("none") == "");
  CHECK(reader.groups_are("none") == StoredOrder::as_is);
  CHECK(reader.location("none").find("model.") != std::string::npos);
  const std::string message = "reading a missing tensor";
  CHECK(internal_error([&] { reader.read("none", {}, out); }) == message);
  CHECK(internal_error([&] { reader.read_part("none", {}, 0, out); }) == message);
}

/// `rope` with the factors of the rotary angles of a file.
RopeSpec with_factors(const std::string& tensor, const std::vector<float>& factors,
                      RopeSpec rope = {}) {
  const ScratchFolder folder;
  std::string bytes;
  for (const float factor : factors) bytes += bytes_of(factor);
  const auto file = folder.write(
      "model.gguf",
      small_llama_metadata().tensor(tensor, {std::ssize(factors)}, GgmlType::f32, bytes).str());
  return detail::with_stored_factors(std::move(rope), file);
}

}  // namespace

TEST_CASE("a tensor that a file lacks has no shape, type or bytes, and is not read") {
  const ScratchFolder folder;
  check_missing(*counted_safetensors(folder));
  check_missing(*counted_gguf(folder));
  const auto packed = packed_of_both_orders();
  const Reader reader = detail::read_packed(packed->path());
  check_missing(*reader);
  CHECK(internal_error([&] { (void)reader->read_groups("none", {}); }) ==
        "reading a missing tensor");
  CHECK(internal_error([&] { (void)reader->read_blocks("x.weight", {}); }) ==
        "the file has no blocks");
  CHECK(internal_error([&] { (void)counted_safetensors(folder)->read_groups("x.weight", {}); }) ==
        "the file has no groups of codes");
}

TEST_CASE("a part of a tensor is its values from one on, in every format") {
  const ScratchFolder folder;
  const std::vector<float> expected{3, 4, 5, 6, 7};
  std::vector<float> part(5);
  counted_safetensors(folder)->read_part("x.weight", {}, 3, part);
  CHECK(part == expected);
  const Reader gguf = counted_gguf(folder);
  gguf->read_part("x.weight", {}, 3, part);
  CHECK(part == expected);
  gguf->read_part("y.weight", 1, 1, part);
  CHECK(part == std::vector<float>{7, 8, 9, 10, 11});
}

TEST_CASE("what does not have the size of the tensor is not read") {
  const ScratchFolder folder;
  const Reader plain = counted_safetensors(folder);
  std::vector<float> out(5);
  CHECK(internal_error([&] { plain->read("x.weight", {}, out); }) ==
        "the output does not have the tensor's size");
  CHECK(internal_error([&] { plain->read_part("x.weight", {}, 8, out); }) ==
        "reading beyond the end of a tensor");
  const auto folder_of_packed = packed_of_both_orders();
  const Reader packed = detail::read_packed(folder_of_packed->path());
  CHECK(internal_error([&] { packed->read("x.weight", {}, out); }) ==
        "the output does not have the tensor's size");
  for (const std::int64_t first : {-1, 12}) {
    CHECK(internal_error([&] { packed->read_part("x.weight", {}, first, out); }) ==
          "reading beyond the end of a tensor");
  }
}

TEST_CASE("parts of packed weights are read in turn, with those of other experts and weights") {
  const auto folder = packed_of_both_orders();
  const Reader reader = detail::read_packed(folder->path());
  CHECK(reader->groups_are("e") == StoredOrder::transposed);
  std::vector<float> part(4);
  const auto reads = [&](const char* name, std::optional<std::int64_t> expert, float value) {
    reader->read_part(name, expert, 6, part);
    return part == std::vector<float>(4, value);
  };
  CHECK(reads("x.weight", {}, 2));
  CHECK(reads("e", 0, 1));
  CHECK(reads("e", 1, 1));
  CHECK(reads("x.weight", {}, 2));
  CHECK(reader->names() == std::vector<std::string>{"e", "norm.weight", "x.weight"});
  CHECK(reader->type_name("norm.weight") == "F32");
  CHECK(reader->file_bytes("norm.weight") == Integer{32});
  CHECK(reader->file_bytes("x.weight") == Integer{16 + 4});
}

TEST_CASE("a weight of one number has no groups of codes") {
  const auto folder = packed_folder({filled_with(0x38, "x.weight", StoredType::float8_e4m3, {}),
                                     filled_with(0x3c, "x.weight_scale", StoredType::float32, {})});
  CHECK_FALSE(detail::read_packed(folder->path())->group_format("x.weight"));
  CHECK(reason_against(*folder) != "");
}

TEST_CASE(
    "factors of rotary angles in GGUF are one list for all lengths, if no scaling is stated") {
  const std::vector<float> factors{1, 2, 8};
  CHECK(with_factors("rope_freqs.weight", factors).long_factors == std::vector<double>{1, 2, 8});
  CHECK(with_factors("other.weight", factors).long_factors.empty());
  RopeSpec scaled;
  scaled.scaling = RopeScalingKind::linear;
  CHECK(with_factors("rope_freqs.weight", factors, scaled).scaling == RopeScalingKind::linear);
  // Gemma 4's dimensions that do not turn.
  CHECK(with_factors("rope_freqs.weight", {1, 1e30F}).scaling == RopeScalingKind::none);
  for (const char* const name : {"rope_factors_long.weight", "rope_factors_short.weight"}) {
    CHECK(refusal_of([&] {
            (void)with_factors(name, factors);
          }).find("LongRoPE factors are not supported in GGUF files") != std::string::npos);
  }
}

TEST_CASE("of a hybrid Qwen, llama.cpp orders values within the rows of one projection anew") {
  const ScratchFolder folder;
  const auto file = folder.write("model.gguf", small_llama_metadata().tensor("x", {1}).str());
  const auto qwen = load_model((data_folder() / "golden/models/qwen3_5_text").string()).spec;
  const Reader reader = detail::read_gguf(file, qwen);
  CHECK_FALSE(reader->has_original_rows("blk.0.ssm_out.weight"));
  CHECK(reader->has_original_rows("blk.0.attn_gate.weight"));
  CHECK(detail::read_gguf(file, llama_spec())->has_original_rows("blk.0.ssm_out.weight"));
}

// Source: convert_hf_to_gguf.py of llama.cpp, Glm4Model: it reorders rows for mrope_section alone.
TEST_CASE("GLM-4's queries in GGUF have their own order unless the angles have sections") {
  const ModelSpec spec = spec_of({{"model_type", "glm4"},
                                  {"hidden_size", 8},
                                  {"num_attention_heads", 1},
                                  {"num_key_value_heads", 1},
                                  {"head_dim", 8},
                                  {"num_hidden_layers", 1},
                                  {"intermediate_size", 16},
                                  {"partial_rotary_factor", 0.5},
                                  {"vocab_size", 32}});
  const ScratchFolder folder;
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes += bytes_of(static_cast<float>(i));
  const auto file = folder.write(
      "model.gguf",
      small_llama_metadata().tensor("blk.0.attn_q.bias", {8}, GgmlType::f32, bytes).str());
  std::vector<float> rows(8);
  detail::read_gguf(file, spec)->read("blk.0.attn_q.bias", {}, rows);
  CHECK(rows == std::vector<float>{0, 1, 2, 3, 4, 5, 6, 7});
  ModelSpec sections = spec;
  sections.position.rope.axes = RopeAxes::sections;
  sections.position.rope.rotary_dim = 4;
  detail::read_gguf(file, sections)->read("blk.0.attn_q.bias", {}, rows);
  CHECK(rows == std::vector<float>{0, 2, 1, 3, 4, 5, 6, 7});
}
