// The legend of the letters in formulas.
#include <doctest/doctest.h>

#include "headroom/report.h"
#include "legend.h"

namespace headroom::test {

using detail::Legend;
using detail::Line;
using detail::symbols_in;

TEST_CASE("the letters of a formula are the words of one letter, with exponents and subscripts") {
  using enum Symbol;
  CHECK(symbols_in("l·(24·b·s·d² + 4·b·s²·d)") ==
        std::vector{num_hidden_layers, batch_size, seq_len, hidden_size});
  CHECK(symbols_in("O(log_κ(s))") == std::vector{seq_len, kernel_size});
  CHECK(symbols_in("O(s/w)") == std::vector{seq_len, sliding_window});
  CHECK(symbols_in("s·τ⁻¹") == std::vector{seq_len, tensor_parallel_share});
  CHECK(symbols_in("2·kv_cache_bytes·N_active·bytes") == std::vector{kv_cache_bytes});
  CHECK(symbols_in("(8·n + 2) / 3") == std::vector{enc_seq_len});
}

TEST_CASE("a legend defines the letters of definitions, too, and wraps") {
  Legend legend;
  CHECK(legend.note("2·b·u·g·k") == "2·b·u·g·k");
  using enum Symbol;
  CHECK(legend.noted() == std::vector{batch_size, seq_len, visible_keys, windowed_keys, past_len,
                                      num_key_value_heads, head_dim, sliding_window});
  const std::vector<Line> lines = legend.lines();
  REQUIRE(lines.size() == 3);
  CHECK(lines[0].label == "where");
  CHECK(lines[0].text == "b batch_size · s seq_len · t visible_keys = p + s");
  CHECK(lines[2].label.empty());
  CHECK(lines[2].text == "p past_len · g num_key_value_heads · k head_dim · w sliding_window");
}

// D of 6·N·D is tokens, and as a symbol visual tokens, of M images.
TEST_CASE("the letters of a rule of thumb are symbols only where its formula has them") {
  WorkloadRequest training;
  training.phase = Phase::train;
  const ExplainReport report = make_explain_report(load_model("gpt2"), training, Subject::training);
  const std::string text = render(report, {Format::table, Detail::summary, 0, Colour::off});
  CHECK(text.find("6·N·D") != std::string::npos);
  CHECK(text.find("= 1 batch_size") != std::string::npos);
  CHECK(text.find("images") == std::string::npos);
}

TEST_CASE("a report without formulas has no legend") { CHECK(Legend().lines().empty()); }

}  // namespace headroom::test
