#include "terms.h"

#include <fmt/format.h>

#include <array>
#include <cctype>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "legend.h"
#include "visit.h"

namespace headroom::detail {
namespace {

/// Parallelism: Shoeybi et al. 2019 (tp), Korthikanti et al. 2022 (sp), Huang et al. 2019 (pp),
/// Lepikhin et al. 2020 (ep), Liu et al. 2023 (cp), Rajbhandari et al. 2020 (ZeRO). MFU: Chowdhery
/// et al. 2022, Appendix B.
constexpr std::array kTerms{
    GlossaryTerm{"MFU", "model FLOPs over the peak of the activations' type"},
    GlossaryTerm{"Comm.", "exposed communication"},
    GlossaryTerm{"Bubble", "pipeline fill and drain"},
    GlossaryTerm{"TTFT", "time to the first token"},
    GlossaryTerm{"TPOT", "time per output token after the first"},
    GlossaryTerm{"tp", "tensor parallelism"},
    GlossaryTerm{"sp", "sequence parallelism between tp's GEMMs"},
    GlossaryTerm{"tp-comm-overlap", "sp's collectives beside GEMMs"},
    GlossaryTerm{"pp", "pipeline stages"},
    GlossaryTerm{"interleave", "model chunks per stage"},
    GlossaryTerm{"dp", "data-parallel replicas"},
    GlossaryTerm{"ep", "expert parallelism"},
    GlossaryTerm{"etp", "tensor parallelism of experts"},
    GlossaryTerm{"cp", "context parallelism"},
    GlossaryTerm{"ZeRO", "replicas share optimizer states (1), gradients (2), weights (3)"}};

bool is_word_byte(char byte) {
  const auto value = static_cast<unsigned char>(byte);
  return std::isalnum(value) != 0 || byte == '_' || byte == '-' || value >= 0x80U;
}

/// Whole words only: `--tp` and `group_tp` are not the term.
bool mentions(std::string_view text, std::string_view term) {
  for (std::size_t at = text.find(term); at != std::string_view::npos;
       at = text.find(term, at + 1)) {
    const std::size_t end = at + term.size();
    const bool starts = at == 0 || !is_word_byte(text[at - 1]);
    if (starts && (end == text.size() || !is_word_byte(text[end]))) return true;
  }
  return false;
}

/// Collects terms until a line explains them.
class TermList {
 public:
  void note(std::string_view text) {
    for (const GlossaryTerm& term : kTerms) {
      if (mentions(text, term.name)) noted_.insert(term.name);
    }
  }

  void note(const Table& table) {
    for (const Column& column : table.columns) note(column.title);
    for (const std::vector<Cell>& row : table.rows) {
      for (const Cell& cell : row) {
        if (const auto* const text = std::get_if<std::string>(&cell)) note(*text);
      }
    }
  }

  /// Adds lines for the terms noted since the last, if there are any.
  void explain(std::vector<Block>& blocks) {
    std::vector<std::string> entries;
    for (const GlossaryTerm& term : kTerms) {
      const bool is_new = noted_.contains(term.name) && explained_.insert(term.name).second;
      if (is_new) entries.push_back(fmt::format("{}: {}", term.name, term.meaning));
    }
    for (Line& line : packed_lines("terms", entries)) blocks.emplace_back(std::move(line));
  }

 private:
  std::set<std::string_view> noted_;
  std::set<std::string_view> explained_;
};

}  // namespace

std::span<const GlossaryTerm> terms() noexcept { return kTerms; }

Document with_terms(Document document) {
  TermList list;
  std::vector<Block> blocks;
  blocks.reserve(document.blocks.size() + 1);
  for (Block& block : document.blocks) {
    std::visit(Overloaded{[](const Heading&) {}, [](const Formula&) {},
                          [&](const Table& table) { list.note(table); },
                          [&](const Line& line) {
                            if (line.role == LineRole::subject) return;
                            list.note(line.label);
                            list.note(line.text);
                          }},
               block);
    const bool is_table = std::holds_alternative<Table>(block);
    blocks.push_back(std::move(block));
    if (is_table) list.explain(blocks);
  }
  list.explain(blocks);
  document.blocks = std::move(blocks);
  return document;
}

}  // namespace headroom::detail
