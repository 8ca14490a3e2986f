// Documents as text, Markdown and CSV.
#include <doctest/doctest.h>

#include <limits>

#include "byte_text.h"
#include "describe.h"
#include "document.h"
#include "factored.h"
#include "headroom/model_source.h"
#include "json_writer.h"
#include "mixer_sizes.h"
#include "similar.h"
#include "support/data.h"
#include "text_table.h"
#include "units.h"
#include "utf8.h"

using namespace headroom;
using namespace headroom::detail;

namespace {

Document sample() {
  Table table;
  table.columns = {words_column("name", "Name"),
                   number_column("size_bytes", "Size", {"[KiB]", 2, 1024}),
                   number_column("share_percent", "Share", {"[%]", 1}, Importance::optional)};
  table.rows = {{std::string("a, \"b\""), Integer{2048}, 66.6667},
                {std::string("c|d"), Integer{1}, Cell{}},
                {std::string("total"), Integer{2049}, 100.0}};
  table.total_rows = 1;
  return {{Line{"label", "text"}, table}};
}

}  // namespace

TEST_CASE("numbers are right-aligned, units are in the header, a rule precedes the total") {
  CHECK(to_text(sample()) ==
        "label  text\n"
        "\n"
        "Name     Size  Share\n"
        "        [KiB]    [%]\n"
        "--------------------\n"
        "a, \"b\"   2.00   66.7\n"
        "c|d     <0.01      –\n"
        "--------------------\n"
        "total    2.00  100.0\n");
}

TEST_CASE("a narrow terminal drops optional columns only") {
  const std::string narrow = to_text(sample(), {16, Colour::off});
  CHECK(narrow.find("Share") == std::string::npos);
  CHECK(narrow.find("Size") != std::string::npos);
  const std::string narrowest = to_text(sample(), {3, Colour::off});
  CHECK(narrowest.find("Size") != std::string::npos);
  CHECK(narrowest.find("\na,      2.00\n\"b\"\n") != std::string::npos);
}

TEST_CASE("text has colour only on request") {
  CHECK(to_text(sample()).find('\033') == std::string::npos);
  CHECK(to_text(sample(), {0, Colour::on}).find('\033') != std::string::npos);
}

TEST_CASE("CSV has base units and empty fields") {
  CHECK(to_csv(sample()) ==
        "name,size_bytes,share_percent\n"
        "\"a, \"\"b\"\"\",2048,66.6667\n"
        "c|d,1,\n"
        "total,2049,100\n");
}

TEST_CASE("text that a spreadsheet would run as a formula begins with an apostrophe in CSV") {
  Table table;
  table.columns = {words_column("name", "Name"), number_column("change", "Change")};
  table.rows = {{std::string("=HYPERLINK(\"x\")"), Integer{-1}}, {std::string("@SUM"), -0.5}};
  CHECK(to_csv({{table}}) == "name,change\n\"'=HYPERLINK(\"\"x\"\")\",-1\n'@SUM,-0.5\n");
}

TEST_CASE("control characters and malformed UTF-8 are shown as their bytes") {
  CHECK(printable(std::string_view("Größe · 10⁸ → 模型")) == "Größe · 10⁸ → 模型");
  CHECK(printable(std::string_view("a\x1b]0;t\x07z\x7f")) == "a\\x1b]0;t\\x07z\\x7f");
  CHECK(printable(std::string_view("\xc2\x9b"
                                   "31m")) == "\\xc2\\x9b31m");
  CHECK(printable(std::string_view("\xff\xc3")) == "\\xff\\xc3");
  CHECK(printable(std::string_view("\u202Egpj.exe")) == "\\xe2\\x80\\xaegpj.exe");
  CHECK(printable(std::string_view("\u2067gpj.exe")) == "\\xe2\\x81\\xa7gpj.exe");
}

TEST_CASE("a document shows no control character of its text") {
  Table table;
  table.columns = {words_column("name", "Name")};
  table.rows = {{std::string("cell\n\x1b[31m")}};
  const Document raw{
      {Heading{"h\x07"}, Line{"l\x07", "t\x07"}, table, Formula{"f\x07", {"s\x07"}}}};
  const std::string text = to_text(printable(raw));
  for (const char shown : {'h', 'l', 't', 'f', 's'}) {
    CHECK(text.find(shown + std::string("\\x07")) != std::string::npos);
  }
  CHECK(text.find("cell\\x0a\\x1b[31m") != std::string::npos);
}

TEST_CASE("seconds are shown as milliseconds and written to CSV as seconds") {
  Table table;
  table.columns = {milliseconds_column("time_s", "Time")};
  table.rows = {{0.0125}};
  CHECK(to_csv({{table}}) == "time_s\n0.0125\n");
  CHECK(to_text({{table}}) == "  Time\n  [ms]\n------\n12.500\n");
}

TEST_CASE("Markdown escapes the separators of tables") {
  const std::string text = to_markdown(sample());
  CHECK(text.find("| c\\|d |") != std::string::npos);
  CHECK(text.find("| :-- | --: | --: |") != std::string::npos);
  CHECK(text.find("| **total** | **2.00** |") != std::string::npos);
}

TEST_CASE("units step by 1024 for bytes and by 1000 for operations") {
  CHECK(byte_unit(1023).name == "B");
  CHECK(byte_unit(1024).name == "KiB");
  CHECK(byte_unit(Integer{1} << 20).name == "MiB");
  CHECK(byte_unit((Integer{1} << 30) - 1).name == "MiB");
  CHECK(byte_unit(Integer{1} << 30).size == Integer{1} << 30);
  CHECK(byte_unit(Integer{1} << 100).name == "YiB");
  CHECK(byte_text(1023) == "1023 B");
  CHECK(byte_text(1536) == "1.50 KiB");
  CHECK(byte_text(Integer{5} << 59) == "2.50 EiB");
  CHECK(operation_unit(999, OperationUnit::flop).name == "FLOP");
  CHECK(operation_unit(1000, OperationUnit::flop).name == "kFLOP");
  CHECK(operation_unit(22348431360, OperationUnit::flop).name == "GFLOP");
  const Unit tera = operation_unit(1'000'000'000'000, OperationUnit::multiply_add);
  CHECK(tera.name == "TMAC");
  CHECK(tera.size == 1'000'000'000'000);
}

TEST_CASE("formulas have the layer count factored out") {
  const Expr l = Symbol::num_hidden_layers;
  const Expr b = Symbol::batch_size;
  const Expr d = Symbol::hidden_size;
  CHECK(format_factored(l * (b * d + d) + b) == "l·(b·d + d) + b");
  CHECK(format_factored(l * b * d) == "l·b·d");
  CHECK(format_factored(l * b - b * d) == "l·b − b·d");
  CHECK(format_factored(Expr()) == "0");
  Bindings values;
  values.set(Symbol::num_hidden_layers, 12);
  values.set(Symbol::batch_size, 3);
  CHECK(format_factored_with_values(l * (b * d + d) + b, values) == "12·(3·d + d) + 3");
}

TEST_CASE("integers beyond 64 bits keep all digits in JSON") {
  Json document;
  document["small"] = json_integer(42);
  document["large"] = json_integer(checked_power(10, 30));
  document["negative"] = json_integer(-checked_power(10, 30));
  CHECK(to_json_text(document) ==
        "{\n  \"small\": 42,\n  \"large\": 1000000000000000000000000000000,\n"
        "  \"negative\": -1000000000000000000000000000000\n}\n");
}

TEST_CASE("a mistyped word gets the closest known one") {
  const std::vector<std::string> known{"bert-base", "bert-large", "gpt2", "llama-7b"};
  CHECK(did_you_mean("bert-bsae", known) == "did you mean bert-base?");
  CHECK(did_you_mean("gtp2", known) == "did you mean gpt2?");
  CHECK(did_you_mean("q4km", std::vector<std::string>{"q4_k_m", "q8_0"}) == "did you mean q4_k_m?");
  CHECK(similar_words("bert", known) == std::vector<std::string>{"bert-base", "bert-large"});
  CHECK(did_you_mean("something else entirely", known).empty());
  CHECK(did_you_mean("", known).empty());
  CHECK(did_you_mean(std::string(65, 'a'), std::vector{std::string(66, 'a')}).empty());
}

TEST_CASE("at most three words are suggested") {
  const std::vector<std::string> known{"--seq-a", "--seq-b", "--seq-c", "--seq-d"};
  CHECK(did_you_mean("--seq", known) == "did you mean --seq-a or --seq-b or --seq-c?");
  CHECK(related_words("--max-seq", known) ==
        std::vector<std::string>{"--seq-a", "--seq-b", "--seq-c"});
}

TEST_CASE("an option that nothing is close to is found by a part of its name") {
  const std::vector<std::string> known{"--search-threads", "--token-ids",  "--seq",
                                       "--enc-seq",        "--new-tokens", "--tp"};
  CHECK(did_you_mean_option("--threads", known) == "did you mean --search-threads?");
  CHECK(did_you_mean_option("--sequence", known) == "did you mean --seq or --enc-seq?");
  CHECK(did_you_mean_option("--tokens", known) == "did you mean --token-ids or --new-tokens?");
  CHECK(did_you_mean_option("--sqe", known) == "did you mean --seq?");
  CHECK(did_you_mean_option("--max-tok", known) == "did you mean --token-ids or --new-tokens?");
  CHECK(did_you_mean_option("--price", known).empty());
  CHECK(did_you_mean_option("--", known).empty());
}

TEST_CASE("a line is broken between items, and below its text") {
  const Document document{{Line{"model", "encoder · 12 layers · hidden 768 · heads 12"}}};
  CHECK(to_text(document, {38, Colour::off}) ==
        "model  encoder · 12 layers ·\n"
        "       hidden 768 · heads 12\n");
  CHECK(to_text(document, {0, Colour::off}) ==
        "model  encoder · 12 layers · hidden 768 · heads 12\n");
}

TEST_CASE("prose is broken at blanks, and a sum before its operator") {
  const Document document{
      {Line{"peak", "2.62 MiB at encoder.layers.context = 20·b·s·d + 4·b·s²·h"}}};
  CHECK(to_text(document, {44, Colour::off}) ==
        "peak  2.62 MiB at encoder.layers.context\n"
        "      = 20·b·s·d + 4·b·s²·h\n");
}

TEST_CASE("a long formula is broken before a plus, and aligned after the equals sign") {
  const Document document{{Formula{"FLOPs", {"24·b·s·d² + 4·b·s²·d + 2·b·d²", "22,348"}}}};
  CHECK(to_text(document, {34, Colour::off}) ==
        "FLOPs = 24·b·s·d² + 4·b·s²·d\n"
        "        + 2·b·d²\n"
        "      = 22,348\n");
}

TEST_CASE("a formula with a long name begins below it on a narrow screen") {
  const Document document{
      {Formula{"decoder.layers.attention.kv_cache", {"96·b·s·g·k", "12,582,912 B"}}}};
  CHECK(to_text(document, {40, Colour::off}) ==
        "decoder.layers.attention.kv_cache\n"
        "  = 96·b·s·g·k\n"
        "  = 12,582,912 B\n");
}

TEST_CASE("words of a table are wrapped in their column, and its rule ends at the width") {
  Table table;
  table.columns = {number_column("time_s", "Time", {"[s]", 1}), words_column("plan", "Plan")};
  table.rows = {{4.5, std::string("tp 2 · sp · dp 4 · micro-batch 2 · ZeRO 3")},
                {5.0, std::string("tp 8")}};
  CHECK(to_text({{table}}, {26, Colour::off}) ==
        "Time  Plan\n"
        " [s]\n"
        "--------------------------\n"
        " 4.5  tp 2 · sp · dp 4 ·\n"
        "      micro-batch 2 ·\n"
        "      ZeRO 3\n"
        " 5.0  tp 8\n");
}

TEST_CASE("shares have bars where the terminal has room, and none in a pipe") {
  Table table;
  table.columns = {words_column("name", "Name"),
                   share_column("share_percent", "Share", {"[%]", 1})};
  table.rows = {{std::string("a"), 25.0}, {std::string("b"), Cell{}}, {std::string("all"), 100.0}};
  CHECK(to_text({{table}}).find("█") == std::string::npos);
  CHECK(to_text({{table}}, {21, Colour::off}).find("█") == std::string::npos);
  CHECK(to_text({{table}}, {22, Colour::off}) ==
        "Name  Share\n"
        "        [%]\n"
        "----------------------\n"
        "a      25.0 ██▌\n"
        "b         –\n"
        "all   100.0 ██████████\n");
}

TEST_CASE("an optional column comes before a bar") {
  Table table;
  table.columns = {words_column("name", "Name"), share_column("share_percent", "Share", {"[%]", 1}),
                   number_column("size", "Size", {}, Importance::optional)};
  table.rows = {{std::string("a"), 25.0, Integer{1}}};
  const std::string text = to_text({{table}}, {22, Colour::off});
  CHECK(text.find("Size") != std::string::npos);
  CHECK(text.find("█") == std::string::npos);
}

TEST_CASE("a bar has an eighth of a column for 1.25 percent, and ends at 100") {
  CHECK(share_bar(0).empty());
  CHECK(share_bar(std::numeric_limits<double>::quiet_NaN()).empty());
  CHECK(share_bar(std::numeric_limits<double>::infinity()) == share_bar(100));
  CHECK(share_bar(1.25) == "▏");
  CHECK(share_bar(50) == "█████");
  CHECK(share_bar(99) == "█████████▉");
  CHECK(share_bar(250) == share_bar(100));
  CHECK(share_bar(-3).empty());
}

TEST_CASE("a verdict has the colour of its outcome, up to the reason") {
  Document document;
  document.add_verdict("verdict", "FITS — 1 GiB free", Outcome::good);
  CHECK(to_text(document, {80, Colour::on}) == "verdict  \033[1;32mFITS\033[0m — 1 GiB free\n");
  CHECK(to_text(document) == "verdict  FITS — 1 GiB free\n");
  Table table;
  table.columns = {words_column("fits", "Fits"), number_column("batch", "Batch")};
  table.rows = {{yes_or_no(true), Integer{2}}, {yes_or_no(false), Integer{3}}};
  const std::string text = to_text({{table}}, {80, Colour::on});
  CHECK(text.find("\033[1;32myes\033[0m       2\n") != std::string::npos);
  CHECK(text.find("\033[1;31mno\033[0m        3\n") != std::string::npos);
  CHECK(to_csv({{table}}) == "fits,batch\nyes,2\nno,3\n");
}

TEST_CASE("a stack of experts alone is described without a width of a dense FFN") {
  const std::string experts = detail::describe(read_preset(*find_preset("qwen3.5-35b-a3b")).spec);
  CHECK(experts.find("FFN") == std::string::npos);
  CHECK(experts.find("hidden 2048 · ") != std::string::npos);
  const std::string dense = detail::describe(read_preset(*find_preset("llama-3-8b")).spec);
  CHECK(dense.find("gated FFN 14336 · ") != std::string::npos);
}

// Widths of the published configs. Qwen3-30B-A3B's config has a dense width of 6144, too, which no
// layer has; Mixtral's config calls its experts' width intermediate_size.
TEST_CASE("a model's sizes are those that a layer has") {
  const auto widths = [](const char* name) {
    const Json json = detail::to_json(read_preset(*find_preset(name)));
    return std::pair(json.at("intermediate_size"), json.at("moe_intermediate_size"));
  };
  CHECK(widths("qwen3-30b-a3b") == std::pair(Json(nullptr), Json(768)));
  CHECK(widths("mixtral-8x7b") == std::pair(Json(nullptr), Json(14336)));
  CHECK(widths("deepseek-v3") == std::pair(Json(18432), Json(2048)));
  CHECK(widths("llama-3-8b") == std::pair(Json(14336), Json(nullptr)));
  CHECK(widths("zamba2-7b") == std::pair(Json(14336), Json(nullptr)));
  CHECK(widths("falcon-mamba-7b") == std::pair(Json(nullptr), Json(nullptr)));
  const Graph graph = build_graph(read_preset(*find_preset("qwen3-30b-a3b")).spec, {});
  CHECK(graph.sizes.get(Symbol::intermediate_size) == Integer{0});
}

// Sizes of the published configs.
TEST_CASE("numbers in formulas of mixers without symbols are named by their sizes") {
  const auto sizes = [](const char* name) {
    return mixer_sizes(read_preset(*find_preset(name)).spec);
  };
  using Texts = std::vector<std::string>;
  CHECK(sizes("qwen3-next-80b-a3b") ==
        Texts{"gated delta: 16 key heads of 128, 32 = 2·η value heads of 128, kernel 4"});
  CHECK(sizes("jamba-1.5-mini") ==
        Texts{"state space: 8192 = 256·h channels, state 16, kernel 4, time-step rank 256"});
  CHECK(sizes("mamba2-780m") == Texts{"state space: 48 heads of 64, state 128, "
                                      "kernel 4"});
  CHECK(sizes("llama-3-8b").empty());
}
