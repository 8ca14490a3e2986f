// Runs a fuzzer's function once on every file in the given folder: regression tests of earlier
// findings, with any compiler. Then, for some seconds, on random changes to them: without coverage
// and sanitizers, but far more of them than a libFuzzer program tries in that time.
//
// usage: headroom_replay_NAME FOLDER [SECONDS [SEED]]
//
// An input that ends the program is left in the current folder as headroom_replay_NAME-crash-SEED.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "fuzz_target.h"

/// Defined by json_mutator.cpp, in fuzzers of JSON only.
extern "C" __attribute__((weak)) std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data,
                                                                     std::size_t size,
                                                                     std::size_t max_size,
                                                                     unsigned int seed);
extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

namespace {

constexpr std::size_t kLongest = 16384;
constexpr unsigned kLongestRunSeconds = 60;

std::mt19937& generator() {
  static std::mt19937 random;
  return random;
}

std::size_t below(std::size_t count) { return generator()() % count; }

std::string& input() {
  static std::string bytes;
  return bytes;
}

std::string& crash_file() {
  static std::string path;
  return path;
}

/// Keeps the input that ended the program, and ends it.
extern "C" void keep_input(int signal) {
  if (std::FILE* const file = std::fopen(crash_file().c_str(), "wb")) {
    (void)std::fwrite(input().data(), 1, input().size(), file);
    (void)std::fclose(file);
  }
  std::fprintf(stderr, "signal %d: %s\n", signal, crash_file().c_str());
  _exit(1);
}

void run(const std::string& bytes) {
  input() = bytes;
  alarm(kLongestRunSeconds);
  LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(input().data()), input().size());
  alarm(0);
}

std::vector<std::string> read_corpus(const char* folder) {
  std::vector<std::string> corpus;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::ifstream stream(entry.path(), std::ios::binary);
    corpus.emplace_back(std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>());
  }
  std::ranges::sort(corpus);  // folders have no order, and a seed names one sequence of inputs
  return corpus;
}

/// One to four changes to `bytes`.
std::string changed(const std::string& bytes) {
  std::vector<std::uint8_t> data(bytes.begin(), bytes.end());
  std::size_t size = std::min(data.size(), kLongest);
  data.resize(kLongest);
  for (std::size_t changes = 1 + below(4); changes > 0; --changes) {
    size = LLVMFuzzerCustomMutator != nullptr
               ? LLVMFuzzerCustomMutator(data.data(), size, kLongest,
                                         static_cast<unsigned>(generator()()))
               : LLVMFuzzerMutate(data.data(), size, kLongest);
  }
  return {data.begin(), data.begin() + static_cast<std::ptrdiff_t>(size)};
}

std::size_t run_changed(const std::vector<std::string>& corpus, std::chrono::seconds time) {
  const auto end = std::chrono::steady_clock::now() + time;
  std::size_t runs = 0;
  for (; std::chrono::steady_clock::now() < end; ++runs) run(changed(corpus[below(corpus.size())]));
  return runs;
}

}  // namespace

/// Changes, removes or adds a byte, as libFuzzer's function of this name does.
extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size,
                                        std::size_t max_size) {
  const auto byte = static_cast<std::uint8_t>(below(256));
  const std::size_t place = below(size + 1);
  if (place == size || below(4) == 0) {
    if (size == max_size) return size;
    std::copy_backward(data + place, data + size, data + size + 1);
    data[place] = byte;
    return size + 1;
  }
  if (below(3) == 0) {
    std::copy(data + place + 1, data + size, data + place);
    return size - 1;
  }
  data[place] = byte;
  return size;
}

int main(int argc, char** argv) {
  if (argc < 2) return 1;
  const std::vector<std::string> corpus = read_corpus(argv[1]);
  const int seconds = argc > 2 ? std::atoi(argv[2]) : 0;
  const int seed = argc > 3 ? std::atoi(argv[3]) : 1;
  generator().seed(static_cast<unsigned>(seed));
  const std::filesystem::path program(argv[0]);
  crash_file() = (std::filesystem::current_path() /
                  (program.filename().string() + "-crash-" + std::to_string(seed)))
                     .string();
  for (const int number : {SIGABRT, SIGSEGV, SIGFPE, SIGILL, SIGBUS, SIGALRM}) {
    if (std::signal(number, keep_input) == SIG_ERR) return 1;
  }
  for (const std::string& bytes : corpus) run(bytes);
  const std::size_t runs = corpus.empty() ? 0 : run_changed(corpus, std::chrono::seconds(seconds));
  std::fprintf(stderr, "%zu files, %zu changed\n", corpus.size(), runs);
  return corpus.empty() ? 1 : 0;
}
