// llama.cpp through its C API: quantises a GGUF file, times prefill and decode, or continues a
// prompt with the most likely tokens. llama_cpp.py compiles it.
//   usage: llama_cpp quantize FROM TO TYPE
//          llama_cpp time FILE THREADS SEQ RUNS STEPS
//          llama_cpp continue FILE THREADS STEPS TOKEN...
// Prefill is one call with all tokens of a prompt, whose last token's logits are asked for. Decode
// follows it, a call per token. Token ids are fixed: the time of a dense model does not depend on
// them.
#include <ggml-backend.h>
#include <ggml-cpu.h>
#include <llama.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using Model = std::unique_ptr<llama_model, decltype(&llama_model_free)>;
using Context = std::unique_ptr<llama_context, decltype(&llama_free)>;

template <typename Pointer>
Pointer required(Pointer pointer, const std::string& meaning) {
  if (pointer == nullptr) throw std::runtime_error("llama.cpp has no " + meaning);
  return pointer;
}

template <typename Function>
Function* of_processor(const char* name) {
  const auto device = required(ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU), "processor");
  return reinterpret_cast<Function*>(required(
      ggml_backend_reg_get_proc_address(ggml_backend_dev_backend_reg(device), name), name));
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.at(values.size() / 2);
}

/// A token, and by how much its logit exceeds the next one's, in standard deviations of all logits.
struct Choice {
  llama_token token = 0;
  double margin = 0;
};

Choice most_likely(const float* logits, llama_token count) {
  Choice best;
  double second = -HUGE_VAL;
  double sum = 0;
  double squares = 0;
  for (llama_token token = 0; token < count; ++token) {
    const double logit = logits[token];
    sum += logit;
    squares += logit * logit;
    if (token == 0 || logit <= logits[best.token]) {
      if (token > 0) second = std::max(second, logit);
      continue;
    }
    second = logits[best.token];
    best.token = token;
  }
  const double mean = sum / count;
  best.margin = (logits[best.token] - second) / std::sqrt(squares / count - mean * mean);
  return best;
}

int quantize(const std::string& from, const std::string& to, const std::string& type) {
  // Numbers of llama_ftype, by the names of llama-quantize.
  const std::map<std::string, llama_ftype> types = {{"q8_0", LLAMA_FTYPE_MOSTLY_Q8_0},
                                                    {"q4_0", LLAMA_FTYPE_MOSTLY_Q4_0},
                                                    {"q4_k_m", LLAMA_FTYPE_MOSTLY_Q4_K_M}};
  auto parameters = llama_model_quantize_default_params();
  parameters.ftype = types.at(type);
  return static_cast<int>(llama_model_quantize(from.c_str(), to.c_str(), &parameters));
}

class Engine {
 public:
  Engine(const std::string& file, int threads, int tokens) {
    auto of_model = llama_model_default_params();
    of_model.n_gpu_layers = 0;
    model_.reset(required(llama_model_load_from_file(file.c_str(), of_model), "model"));
    vocab_size_ = llama_vocab_n_tokens(llama_model_get_vocab(model_.get()));
    auto of_context = llama_context_default_params();
    of_context.n_ctx = static_cast<std::uint32_t>(tokens);
    of_context.n_threads = of_context.n_threads_batch = threads;
    context_.reset(required(llama_init_from_model(model_.get(), of_context), "context"));
    // llama-bench attaches a pool of its own, too: without one, threads start with every call.
    auto of_threads = ggml_threadpool_params_default(threads);
    pool_ = required(
        of_processor<decltype(ggml_threadpool_new)>("ggml_threadpool_new")(&of_threads), "pool");
    llama_attach_threadpool(context_.get(), pool_, nullptr);
  }
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;
  ~Engine() {
    context_.reset();
    of_processor<decltype(ggml_threadpool_free)>("ggml_threadpool_free")(pool_);
  }

  void clear() { llama_memory_clear(llama_get_memory(context_.get()), false); }

  /// Seconds of one call with `count` tokens behind those before it.
  double seconds(int count) {
    std::vector<llama_token> tokens(static_cast<std::size_t>(count));
    for (auto& token : tokens) token = next_ = (next_ * 31 + 7) % vocab_size_;
    const auto start = std::chrono::steady_clock::now();
    logits_after(tokens);
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }

  /// The most likely token behind `tokens` and those before them.
  Choice choice_after(std::vector<llama_token> tokens) {
    return most_likely(logits_after(tokens), vocab_size_);
  }

 private:
  /// Logits of the last token; waits for them.
  float* logits_after(std::vector<llama_token>& tokens) {
    const auto count = static_cast<std::int32_t>(tokens.size());
    if (llama_decode(context_.get(), llama_batch_get_one(tokens.data(), count)) != 0) {
      throw std::runtime_error("llama_decode failed");
    }
    return required(llama_get_logits_ith(context_.get(), -1), "logits");
  }

  Model model_{nullptr, &llama_model_free};
  Context context_{nullptr, &llama_free};
  ggml_threadpool_t pool_ = nullptr;
  llama_token vocab_size_ = 0;
  llama_token next_ = 0;
};

void time(const std::string& file, int threads, int seq, int runs, int steps) {
  Engine engine(file, threads, seq + steps);
  std::vector<double> prefill;
  std::vector<double> decode;
  for (int run = 0; run <= runs; ++run) {
    engine.clear();
    const double prompt = engine.seconds(seq);
    for (int step = 0; step < steps; ++step) {
      const double one = engine.seconds(1);
      if (run > 0) decode.push_back(one);
    }
    // The first run warms up.
    if (run > 0) prefill.push_back(prompt);
  }
  std::printf("{\"prefill_s\": %.6f, \"decode_s\": %.6f}\n", median(prefill), median(decode));
}

void continue_prompt(const std::string& file, int threads, int steps,
                     std::vector<llama_token> tokens) {
  Engine engine(file, threads, static_cast<int>(tokens.size()) + steps);
  std::string separator;
  std::printf("[");
  for (int step = 0; step < steps; ++step) {
    const Choice choice = engine.choice_after(tokens);
    std::printf("%s{\"token\": %d, \"margin\": %.4f}", separator.c_str(), choice.token,
                choice.margin);
    tokens = {choice.token};
    separator = ", ";
  }
  std::printf("]\n");
}

int run(const std::vector<std::string>& words) {
  ggml_backend_load_all_from_path(LLAMA_BINARIES);
  llama_backend_init();
  if (words.at(1) == "quantize") return quantize(words.at(2), words.at(3), words.at(4));
  const int threads = std::stoi(words.at(3));
  if (words.at(1) == "continue") {
    std::vector<llama_token> tokens;
    for (std::size_t i = 5; i < words.size(); ++i) tokens.push_back(std::stoi(words[i]));
    continue_prompt(words.at(2), threads, std::stoi(words.at(4)), tokens);
    return 0;
  }
  time(words.at(2), threads, std::stoi(words.at(4)), std::stoi(words.at(5)),
       std::stoi(words.at(6)));
  return 0;
}

}  // namespace

int main(int count, char** words) {
  llama_log_set([](ggml_log_level, const char*, void*) {}, nullptr);
  try {
    return run({words, words + count});
  } catch (const std::exception& error) {
    std::fprintf(stderr, "llama_cpp: %s\n", error.what());
    return 1;
  }
}
