// A sweep over several processes.
#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "headroom/error.h"
#include "interruption.h"
#include "joined_processes.h"
#include "output.h"
#include "sweep_pieces.h"
#include "sweep_runs.h"

namespace headroom::cli {
namespace {

/// Processes take pieces of the grid in turn, and send their rows to the first one, which writes
/// them in order.
class SharedSweep {
 public:
  SharedSweep(const SweepCommand& command, const PreparedSweep& prepared,
              measured::Coordinator& world)
      : prepared_(prepared),
        world_(world),
        writer_(row_format_of(command), prepared.model.spec, current_invocation()) {
    if (world.rank() == 0) stream_.emplace(command.file).text() = writer_.header();
  }

  void run() {
    // Several pieces for each process, so that they end together; each is worth its graph.
    constexpr Integer kMostRowsOfPiece = 1 << 16;
    constexpr Integer kPiecesEach = 8;
    const Integer even = ceil_div(prepared_.rows, kPiecesEach * world_.size());
    for_each_piece(prepared_.grid, std::min(kMostRowsOfPiece, even), [&](const SweepGrid& piece) {
      detail::throw_if_interrupted();
      const std::int64_t owner = next_owner_++ % world_.size();
      if (world_.rank() == 0) {
        write(owner == 0 ? rows_of(piece) : receive(owner), size_of(piece));
      } else if (world_.rank() == owner) {
        send(piece);
      }
    });
    if (stream_) stream_->finish();
  }

  [[nodiscard]] const SweepWriter& writer() const noexcept { return writer_; }

 private:
  /// Sends the rows of `piece` after an empty text, or the error that it has.
  void send(const SweepGrid& piece) {
    std::string rows;
    try {
      rows = rows_of(piece);
    } catch (const Error& error) {
      const nlohmann::json parts{error.message(), error.where(), error.hint()};
      world_.send(std::to_string(static_cast<int>(error.code())), 0);
      world_.send(parts.dump(), 0);
      throw EndQuietly{exit_status(error.code())};
    }
    world_.send({}, 0);
    world_.send(rows, 0);
  }

  /// The rows of a process. Throws its error, in the order of the grid.
  std::string receive(std::int64_t owner) {
    const std::string code = world_.receive(owner);
    std::string text = world_.receive(owner);
    if (code.empty()) return text;
    const auto parts = nlohmann::json::parse(text).get<std::array<std::string, 3>>();
    throw Error(static_cast<ErrorCode>(std::stoi(code)), parts[0], parts[1], parts[2]);
  }

  std::string rows_of(const SweepGrid& piece) {
    std::string text;
    sweep(prepared_.model.spec, piece, prepared_.machine, [&](const SweepRow& row) {
      if (!started_ && world_.rank() > 0) {  // only the first row of all names the command
        writer_.append_row(row, text);
        text.clear();
      }
      started_ = true;
      writer_.append_row(row, text);
      return true;
    });
    return text;
  }

  void write(const std::string& text, Integer rows) {
    stream_->text() += text;
    stream_->flush_when_long();
    rows_ += rows;
    (void)show_rows(bar_, rows_, prepared_.rows);
  }

  const PreparedSweep& prepared_;
  measured::Coordinator& world_;
  SweepWriter writer_;
  std::optional<RowStream> stream_;  ///< of the first process
  std::int64_t next_owner_ = 0;
  bool started_ = false;
  Integer rows_ = 0;
  ProgressBar bar_;
};

}  // namespace

void sweep_on_ranks(const SweepCommand& command) {
  JoinedProcesses all;
  all.run([&] {
    if (output_of(command) == SweepOutput::page) {  // a few rows
      if (all.reports()) sweep_to_page(command);
      return;
    }
    PreparedSweep prepared;
    std::optional<SharedSweep> shared;
    all.together([&] {
      prepared = prepare(command);
      shared.emplace(command, prepared, all.processes().world());
    });
    detail::end_at_next_step();
    shared->run();
    if (all.reports()) write_end(command, shared->writer(), prepared.notes);
  });
}

}  // namespace headroom::cli
