// GGUF: the contents of valid files, and errors for untrusted lengths and offsets. Block sizes are
// those of ggml's Python reader (GGML_QUANT_SIZES in gguf-py/gguf/constants.py,
// github.com/ggml-org/llama.cpp), except Q8_1, whose block of 36 bytes ggml-common.h asserts.
#include <doctest/doctest.h>

#include <cstring>
#include <map>

#include "checkpoint/weight_files.h"
#include "gguf.h"
#include "model_files.h"
#include "support/gguf_writer.h"

using namespace headroom;
using namespace headroom::checkpoint;
using namespace headroom::test;

namespace {

GgufContent parse(const std::string& bytes) {
  return parse_gguf(std::as_bytes(std::span(bytes)), "f");
}

/// The place of the error from a file with these bytes.
std::string place(const std::string& bytes) {
  return input_error_of([&] { (void)parse(bytes); }).where();
}

std::string message(const std::string& bytes) {
  return input_error_of([&] { (void)parse(bytes); }).message();
}

/// A list of float32 numbers.
std::string floats(const std::vector<float>& values) {
  std::string bytes = bytes_of(std::uint32_t{6}) + bytes_of(std::uint64_t{values.size()});
  for (const float value : values) bytes += bytes_of(value);
  return bytes;
}

/// A file with a list of a constant of xIELU.
GgufWriter listing(const std::vector<float>& values) {
  constexpr std::uint32_t kArray = 9;
  GgufWriter writer(3);
  writer.add("general.architecture", "apertus").add_raw("xielu.beta", kArray, floats(values));
  return writer;
}

}  // namespace

TEST_CASE("numbers that metadata list for each layer are tensors of one value") {
  const TempFolder folder;
  const auto path = folder / "model.gguf";
  write_file(path, listing({0.5F, -2}).tensor("w", {64}).str());
  const ModelFiles files(path);
  CHECK(files.tensors().size() == 3);
  const auto index = files.tensors().find("blk.1.xielu.beta");
  REQUIRE(index);
  const TensorInfo tensor = files.tensors()[*index];
  CHECK(tensor.elements() == 1);
  float value = 0;
  const std::span<const std::byte> data = files.data(tensor);
  REQUIRE(data.size() == sizeof(value));
  std::memcpy(&value, data.data(), sizeof(value));
  CHECK(value == -2);
}

TEST_CASE("a list of layers that is a tensor too, or longer than any model, is refused") {
  const TempFolder folder;
  const auto path = folder / "model.gguf";
  for (const std::string& bytes : {listing({0.5F}).tensor("blk.0.xielu.beta", {1}).str(),
                                   listing(std::vector<float>(100'001)).tensor("w", {64}).str()}) {
    write_file(path, bytes);
    const Error error = input_error_of([&] { (void)ModelFiles(path); });
    CHECK(error.where().find("xielu.beta") != std::string::npos);
  }
}

TEST_CASE("every ggml type has its published block size and bytes") {
  const std::map<std::string_view, std::pair<int, int>> published = {
      {"F32", {1, 4}},        {"F16", {1, 2}},        {"Q4_0", {32, 18}},     {"Q4_1", {32, 20}},
      {"Q5_0", {32, 22}},     {"Q5_1", {32, 24}},     {"Q8_0", {32, 34}},     {"Q8_1", {32, 36}},
      {"Q2_K", {256, 84}},    {"Q3_K", {256, 110}},   {"Q4_K", {256, 144}},   {"Q5_K", {256, 176}},
      {"Q6_K", {256, 210}},   {"Q8_K", {256, 292}},   {"IQ2_XXS", {256, 66}}, {"IQ2_XS", {256, 74}},
      {"IQ3_XXS", {256, 98}}, {"IQ1_S", {256, 50}},   {"IQ4_NL", {32, 18}},   {"IQ3_S", {256, 110}},
      {"IQ2_S", {256, 82}},   {"IQ4_XS", {256, 136}}, {"I8", {1, 1}},         {"I16", {1, 2}},
      {"I32", {1, 4}},        {"I64", {1, 8}},        {"F64", {1, 8}},        {"IQ1_M", {256, 56}},
      {"BF16", {1, 2}},       {"TQ1_0", {256, 54}},   {"TQ2_0", {256, 66}},   {"MXFP4", {32, 17}},
      {"NVFP4", {64, 36}},    {"Q1_0", {128, 18}},    {"Q2_0", {64, 18}},
  };
  CHECK(ggml_types().size() == published.size());
  for (const GgmlTypeInfo& type : ggml_types()) {
    CAPTURE(type.name);
    REQUIRE(published.contains(type.name));
    CHECK(std::pair<int, int>(type.block_size, type.block_bytes) == published.at(type.name));
    CHECK(ggml_type(static_cast<std::uint32_t>(type.type)) == type.type);
  }
  // Types removed from ggml: Q4_2, Q4_3, Q4_0_4_4 … Q4_0_8_8, IQ4_NL_4_4 … IQ4_NL_8_8.
  for (const std::uint32_t number : {4U, 5U, 31U, 32U, 33U, 36U, 37U, 38U, 43U, 1000U}) {
    CHECK_FALSE(ggml_type(number));
  }
}

TEST_CASE("the beginning of a file suffices for the tensors of its header") {
  GgufWriter writer(3);
  writer.add("general.architecture", "llama").tensor("w", {64}).tensor("v", {3, 64});
  const std::string whole = writer.str();
  const std::span<const std::byte> bytes = std::as_bytes(std::span(whole));
  const std::uint64_t header = parse(whole).data_begin;
  const GgufContent content = parse_gguf({bytes.first(header), whole.size()}, "f");
  REQUIRE(content.tensors.size() == 2);
  CHECK(content.tensors[1].bytes == 3 * 64 * 4);
  CHECK(content.data_begin == header);
  CHECK_THROWS_AS((void)parse_gguf({bytes.first(header), whole.size() - 1}, "f"), Error);
  CHECK_THROWS_WITH((void)parse_gguf({bytes.first(header - 40), whole.size()}, "f"),
                    doctest::Contains("only its beginning was read"));
}

TEST_CASE("metadata and tensors of versions 2 and 3 are read") {
  for (const std::uint32_t version : {2U, 3U}) {
    GgufWriter writer(version);
    writer.add("general.architecture", "llama").add("llama.block_count", 2U);
    writer.add("llama.rope.freq_base", 500000.0F).add("flag", true);
    writer.add("kv", std::vector<std::uint32_t>{4, 0, 4});
    writer.add("tokens", std::vector<std::string>{"a", "bc"});
    writer.add_raw("i8", 1, bytes_of(std::int8_t{-3}));
    writer.add_raw("i64", 11, bytes_of(std::int64_t{-5}));
    writer.add_raw("f64", 12, bytes_of(0.25));
    writer.add_raw("u16", 2, bytes_of(std::uint16_t{65535}));
    writer.add_raw("u8", 0, bytes_of(std::uint8_t{255})).add("general.alignment", 32U);
    writer.tensor("token_embd.weight", {3, 64}, GgmlType::q4_0).tensor("norm", {64});
    const std::string bytes = writer.str();
    const GgufContent content = parse(bytes);
    CHECK(content.version == version);
    CHECK(std::get<std::string_view>(content.metadata.at("general.architecture")) == "llama");
    CHECK(std::get<std::uint64_t>(content.metadata.at("llama.block_count")) == 2);
    CHECK(std::get<std::uint64_t>(content.metadata.at("u8")) == 255);
    CHECK(std::get<double>(content.metadata.at("llama.rope.freq_base")) == 500000);
    CHECK(std::get<bool>(content.metadata.at("flag")));
    CHECK(std::get<std::int64_t>(content.metadata.at("i8")) == -3);
    CHECK(std::get<std::int64_t>(content.metadata.at("i64")) == -5);
    CHECK(std::get<double>(content.metadata.at("f64")) == 0.25);
    CHECK(std::get<std::uint64_t>(content.metadata.at("u16")) == 65535);
    const auto& kv = std::get<GgufArray>(content.metadata.at("kv"));
    CHECK(kv.integers("kv") == std::vector<std::int64_t>{4, 0, 4});
    CHECK(std::get<GgufArray>(content.metadata.at("tokens")).count == 2);
    REQUIRE(content.tensors.size() == 2);
    const GgufTensor& table = content.tensors[0];
    CHECK(table.name == "token_embd.weight");
    CHECK(std::vector(table.shape().begin(), table.shape().end()) ==
          std::vector<std::int64_t>{3, 64});
    CHECK(table.bytes == 3 * 2 * 18);
    CHECK(content.tensors[1].offset == 128);  // 108 bytes, aligned to 32
  }
}

TEST_CASE("lists may nest up to a limit") {
  const auto nested = [](int depth) {
    std::string bytes;
    for (int i = 1; i < depth; ++i) {
      bytes += bytes_of(std::uint32_t{9}) + bytes_of(std::uint64_t{1});
    }
    bytes += bytes_of(std::uint32_t{7}) + bytes_of(std::uint64_t{2}) + std::string("\1\0", 2);
    return GgufWriter().add_raw("lists", 9, bytes).str();
  };
  CHECK(parse(nested(4)).metadata.size() == 1);
  CHECK(place(nested(5)) == "f: lists");
  const std::string flat = nested(1);
  const GgufContent content = parse(flat);
  CHECK(std::get<GgufArray>(content.metadata.at("lists")).flags("f") ==
        std::vector<bool>{true, false});
}

TEST_CASE("the error names an unsupported version") {
  CHECK(message(GgufWriter(1).str()).find("version 1") != std::string::npos);
  CHECK(message(GgufWriter(4).str()).find("version 4") != std::string::npos);
  CHECK(message(GgufWriter(0).str()).find("version 0") != std::string::npos);
  CHECK(message(GgufWriter(0x03000000).str()).find("big-endian") != std::string::npos);
  CHECK(place("GGML") == "f");
  CHECK(place("") == "f");
}

TEST_CASE("a file truncated anywhere is refused") {
  GgufWriter writer;
  writer.add("general.architecture", "llama").add("list", std::vector<std::string>{"a", "b"});
  writer.tensor("a", {2, 32}, GgmlType::q8_0).tensor("b", {5});
  std::string whole = writer.str();
  whole.resize(whole.size() - 12);  // the padding of the last tensor may be missing
  CHECK(parse(whole).tensors.size() == 2);
  for (std::size_t size = 0; size < whole.size(); ++size) {
    CAPTURE(size);
    CHECK(place(whole.substr(0, size)).starts_with("f"));
  }
}

TEST_CASE("counts and lengths beyond the file are refused before any allocation") {
  constexpr std::uint64_t kHuge = std::uint64_t{1} << 62U;
  const std::string start = "GGUF" + bytes_of(std::uint32_t{3});
  CHECK(place(start + bytes_of(kHuge) + bytes_of(std::uint64_t{0})) == "f");
  CHECK(place(start + bytes_of(std::uint64_t{0}) + bytes_of(kHuge)) == "f");
  CHECK(place(start + bytes_of(std::uint64_t{0}) + bytes_of(std::uint64_t{1}) + bytes_of(kHuge)) ==
        "f");
  for (const std::uint32_t type : {0U, 4U, 10U}) {  // 2^62 elements of 8 bytes overflow
    const std::string list = bytes_of(type) + bytes_of(kHuge);
    CHECK(place(GgufWriter().add_raw("list", 9, list).str()) == "f: list");
  }
  CHECK(place(GgufWriter().add_raw("list", 9, bytes_of(std::uint32_t{8}) + bytes_of(kHuge)).str())
            .starts_with("f"));
}

TEST_CASE("values and keys that the format does not allow are refused") {
  CHECK(place(GgufWriter().add_raw("flag", 7, "\2").str()) == "f: flag");
  CHECK(place(GgufWriter().add_raw("odd", 13, "").str()) == "f: odd");
  CHECK(place(GgufWriter().add("twice", 1U).add("twice", 1U).str()) == "f: twice");
  CHECK(place(GgufWriter().add("", 1U).str()) == "f");
  CHECK(place(GgufWriter().add("a\nb", 1U).str()) == "f");
  CHECK(place(GgufWriter().add("\xC0\x80", 1U).str()) == "f");
  CHECK(place(GgufWriter().add("general.alignment", 24U).str()) == "f: general.alignment");
  CHECK(place(GgufWriter().add("general.alignment", 0U).str()) == "f: general.alignment");
  CHECK(place(GgufWriter().add("general.alignment", "32").str()) == "f: general.alignment");
  CHECK(place(GgufWriter().add("general.alignment", 1U << 31U).str()) == "f: general.alignment");
  CHECK(place(GgufWriter().add(std::string(65536, 'k'), 1U).str()) == "f");
  CHECK(parse(GgufWriter().add(std::string(65535, 'k'), 1U).str()).metadata.size() == 1);
}

TEST_CASE("a list is read as numbers of its own kind, or refused") {
  const auto list_of = [](std::uint32_t type, const std::string& elements, std::uint64_t count) {
    return GgufWriter().add_raw("l", 9, bytes_of(type) + bytes_of(count) + elements).str();
  };
  const auto read = [](const std::string& bytes, const auto& as) {
    const GgufContent content = parse(bytes);
    return as(std::get<GgufArray>(content.metadata.at("l")));
  };
  const auto integers = [](const GgufArray& list) { return list.integers("f: l"); };
  const auto numbers = [](const GgufArray& list) { return list.numbers("f: l"); };
  const auto flags = [](const GgufArray& list) { return list.flags("f: l"); };
  const std::string words = list_of(8, gguf_text("a"), 1);
  const std::string halves = list_of(12, bytes_of(0.5), 1);
  CHECK(read(list_of(3, bytes_of(std::int16_t{-7}), 1), integers) == std::vector<std::int64_t>{-7});
  CHECK(read(list_of(5, bytes_of(std::int32_t{-8}), 1), integers) == std::vector<std::int64_t>{-8});
  CHECK(read(list_of(10, bytes_of(std::uint64_t{9}), 1), integers) == std::vector<std::int64_t>{9});
  CHECK(read(list_of(1, bytes_of(std::int8_t{-6}), 1), integers) == std::vector<std::int64_t>{-6});
  CHECK(read(list_of(2, bytes_of(std::uint16_t{5}), 1), integers) == std::vector<std::int64_t>{5});
  CHECK(read(list_of(11, bytes_of(std::int64_t{-4}), 1), integers) ==
        std::vector<std::int64_t>{-4});
  CHECK(read(halves, numbers) == std::vector<double>{0.5});
  const std::string above = list_of(10, bytes_of(std::uint64_t{1} << 63U), 1);
  for (const std::string& bytes : {words, halves, above}) {
    CHECK(input_error_of([&] { (void)read(bytes, integers); }).where() == "f: l");
  }
  CHECK(input_error_of([&] { (void)read(words, numbers); }).where() == "f: l");
  CHECK(input_error_of([&] { (void)read(words, flags); }).where() == "f: l");
}

TEST_CASE("bytes of a shape fill whole blocks, and fit any file") {
  using Shape = std::vector<std::int64_t>;
  CHECK(ggml_bytes(GgmlType::f32, Shape{}) == 4);  // a scalar
  CHECK(ggml_bytes(GgmlType::q8_0, Shape{2, 64}) == 2 * 2 * 34);
  CHECK_FALSE(ggml_bytes(GgmlType::q8_0, Shape{}).has_value());
  CHECK_FALSE(ggml_bytes(GgmlType::q8_0, Shape{64, 2}).has_value());
  CHECK_FALSE(ggml_bytes(GgmlType::f32, Shape{-1}).has_value());
  CHECK_FALSE(ggml_bytes(GgmlType::f32, Shape{1LL << 62, 4}).has_value());
  CHECK(error_of([] { (void)info(static_cast<GgmlType>(4)); }).code() == ErrorCode::internal);
}

TEST_CASE("the files of a split are named by five digits, and each tensor is in one of them") {
  CHECK(part_name("m-00001-of-00002.gguf")->number == "00001");
  for (const char* name : {"m.gguf", "1-of-00002.gguf", "m-0000x-of-00002.gguf",
                           "m-00001-of-0000x.gguf", "m-00001-of-2", "m-0000/-of-00002.gguf"}) {
    CAPTURE(name);
    CHECK_FALSE(part_name(name).has_value());
  }
  const TempFolder folder;
  const std::string part = GgufWriter().add("split.count", 2U).tensor("w", {64}).str();
  write_file(folder / "m-00001-of-00002.gguf", part);
  write_file(folder / "m-00002-of-00002.gguf", part);
  const Error twice = input_error_of([&] { (void)ModelFiles(folder.path()); });
  CHECK(twice.where().ends_with("m-00002-of-00002.gguf: w"));
  write_file(folder / "alone.gguf", part);
  CHECK(input_error_of([&] { (void)ModelFiles(folder / "alone.gguf"); }).where() ==
        (folder / "alone.gguf").string());
}

TEST_CASE("a number of files is a natural number up to 99,999") {
  constexpr std::uint32_t kInt16 = 3;
  const TempFolder folder;
  const auto open = [&](GgufWriter writer) {
    write_file(folder / "m.gguf", writer.tensor("w", {64}).str());
    return ModelFiles(folder / "m.gguf").tensors().size();
  };
  CHECK(open(GgufWriter().add("split.count", 0U)) == 1);
  CHECK(open(GgufWriter().add_raw("split.count", kInt16, bytes_of(std::int16_t{1}))) == 1);
  for (const GgufWriter& writer :
       {GgufWriter().add("split.count", "2"), GgufWriter().add("split.count", 100'000U),
        GgufWriter().add_raw("split.count", kInt16, bytes_of(std::int16_t{-1}))}) {
    CHECK(input_error_of([&] { (void)open(writer); }).where() ==
          (folder / "m.gguf").string() + ": split.count");
  }
}

TEST_CASE("a constant of layers is a list of float32, and any other value is metadata") {
  const TempFolder folder;
  GgufWriter writer;
  writer.add("xielu.beta", 1U).add("xielu.eps", std::vector<std::uint32_t>{1});
  write_file(folder / "m.gguf", writer.tensor("w", {64}).str());
  CHECK(ModelFiles(folder / "m.gguf").tensors().size() == 1);
}

TEST_CASE("the error names a tensor that exceeds the file or overlaps another") {
  const auto with = [](std::vector<std::uint64_t> sizes, std::uint32_t type, std::uint64_t offset) {
    return GgufWriter()
        .tensor("first", {32})
        .tensor_raw("bad", std::move(sizes), type, offset)
        .str();
  };
  CHECK(parse(with({0}, 0, 128)).tensors.size() == 2);
  CHECK(place(with({1}, 0, 128)) == "f: bad");            // after the end
  CHECK(place(with({1}, 0, 16)) == "f: bad");             // not aligned
  CHECK(place(with({1}, 0, 64)) == "f: bad");             // overlaps the first
  CHECK(place(with({33}, 2, 0)) == "f: bad");             // partial blocks
  CHECK(place(with({1}, 4, 0)) == "f: bad");              // a removed type
  CHECK(place(with({1, 1, 1, 1, 1}, 0, 0)) == "f: bad");  // five dimensions
  CHECK(place(with({std::uint64_t{1} << 63U}, 0, 0)) == "f: bad");
  CHECK(place(with({std::uint64_t{1} << 40U, std::uint64_t{1} << 40U}, 0, 0)) == "f: bad");
  CHECK(place(with({1}, 0, ~std::uint64_t{0} - 31)) == "f: bad");  // offset + size wraps
  CHECK(place(GgufWriter().tensor("a", {8}).tensor("a", {8}).str()) == "f: a");
  CHECK(place(GgufWriter().tensor(std::string(65, 'x'), {8}).str()) == "f");
  CHECK(place(GgufWriter().tensor("a\x1B", {8}).str()) == "f");
  CHECK(parse(GgufWriter().tensor(std::string(64, 'x'), {8}).str()).tensors.size() == 1);
}

TEST_CASE("a GGUF file is recognised by its first bytes, or by its name if they are damaged") {
  const TempFolder folder;
  write_file(folder / "a.bin", GgufWriter().tensor("t", {4}).str());
  write_file(folder / "b.gguf", "no");
  CHECK(is_gguf(folder / "a.bin"));
  write_file(folder / "c.bin", "no");
  CHECK(is_gguf(folder / "b.gguf"));
  CHECK_FALSE(is_gguf(folder / "c.bin"));
  CHECK_FALSE(is_gguf(folder / "absent"));
  CHECK_FALSE(is_gguf(folder.path()));
  GgufFile opened(folder / "a.bin");
  const GgufFile file = std::move(opened);
  CHECK(file.content().tensors.front().name == "t");
  CHECK(file.find("general.architecture") == nullptr);
}
