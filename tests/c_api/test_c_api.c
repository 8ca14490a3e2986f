/* The C API from C: figures, errors, and several threads at once. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "headroom/headroom_c.h"

static int failures = 0;

/* Checks that the answer to `request` contains `expected`. */
static void expect(const char* request, const char* expected) {
  char* answer = headroom_run(request);
  if (answer == NULL || strstr(answer, expected) == NULL) {
    fprintf(stderr, "%s\n  does not answer %s\n  but %.400s\n", request == NULL ? "NULL" : request,
            expected, answer == NULL ? "NULL" : answer);
    ++failures;
  }
  headroom_free(answer);
}

/* Checks that the answer to `request` does not contain `text`. */
static void expect_without(const char* request, const char* text) {
  char* answer = headroom_run(request);
  if (answer == NULL || strstr(answer, text) != NULL) {
    fprintf(stderr, "%s\n  answers %s\n", request, text);
    ++failures;
  }
  headroom_free(answer);
}

/* BERT-base: 109,482,240 parameters (the reference count of its preset). */
static const char kBert[] = "{\"command\": \"analyze\", \"model\": \"bert-base\", \"seq\": 128}";

/* GPT-2's config.json: 124,439,808 parameters (Hugging Face, GPT2LMHeadModel). */
static const char kGpt2Config[] =
    "{\"command\": \"analyze\", \"model\": {\"model_type\": \"gpt2\", \"architectures\": "
    "[\"GPT2LMHeadModel\"], \"n_embd\": 768, \"n_layer\": 12, \"n_head\": 12, \"n_positions\": "
    "1024, "
    "\"n_ctx\": 1024, \"vocab_size\": 50257, \"_name_or_path\": \"openai/gpt2\"}}";

static void test_reports(void) {
  expect(kBert, "\"status\":0");
  expect(kBert, "\"total\": 109482240");
  expect(kGpt2Config, "\"total\": 124439808");
  expect(kGpt2Config, "\"name\": \"gpt2\"");
  expect_without(kGpt2Config, "/tmp/");
  expect("{\"command\": \"analyze\", \"model\": \"gpt2\", \"kv_dtype\": \"float16\"}",
         "\"kv_dtype\": \"float16\"");
  expect("{\"command\": \"machines show\", \"machine\": \"h100-80gb\"}", "\"status\":0");
}

/* 141 GB of weights do not fit on a device of 24 GB: a failed verdict has a report. */
static void test_verdict(void) {
  static const char kFit[] =
      "{\"command\": \"fit\", \"model\": \"llama-3-70b\", \"machine\": \"rtx-4090\"}";
  static const char kFits[] =
      "{\"command\": \"fit\", \"model\": \"llama-3-8b\", \"machine\": \"h100-80gb\"}";
  expect(kFit, "\"status\":1");
  expect(kFit, "\"report\":");
  expect(kFits, "\"status\":0");
}

/* Devices that no plan fits are an answer, not a mistake: as fit's verdict, status 1. */
static void test_no_plan(void) {
  static const char kServe[] =
      "{\"command\": \"serve\", \"model\": \"llama-3-70b\", \"machine\": \"rtx-4090\", \"rate\": "
      "1}";
  static const char kTrain[] =
      "{\"command\": \"train-time\", \"model\": \"llama-3-70b\", \"machine\": \"rtx-4090\", "
      "\"tokens\": \"1B\"}";
  expect(kServe, "\"status\":1");
  expect(kServe, "\"code\":\"no_plan_fits\"");
  expect(kTrain, "\"status\":1");
}

static void test_text(void) {
  expect("{\"command\": \"analyze\", \"model\": \"bert-base\", \"format\": \"csv\"}",
         "\"text\":\"component,parameters,");
  expect("{\"command\": \"completion\", \"shell\": \"bash\"}", "\"text\":\"# bash completion");
  expect("{\"command\": \"analyze\", \"model\": \"bert-base\", \"detail\": true, \"quiet\": false}",
         "\"status\":0");
}

/* A request for help or for a file is answered with JSON, too. */
static void test_other_outputs(void) {
  static const char kHelp[] = "{\"command\": \"analyze\", \"model\": \"gpt2\", \"help\": true}";
  static const char kFile[] =
      "{\"command\": \"analyze\", \"model\": \"gpt2\", \"output\": \"c_api_report.json\"}";
  static const char kJson[] = "{\"command\": \"analyze\", \"model\": \"gpt2\", \"json\": true}";
  expect(kHelp, "\"text\":\"");
  expect_without(kHelp, "\"report\"");
  expect(kFile, "{\"status\":0,\"messages\":[]}");
  expect(kJson, "\"total\": 124439808");
  remove("c_api_report.json");
}

/* A recipe beside a type that contradicts it. */
static void test_contradictions(void) {
  expect(
      "{\"command\": \"analyze\", \"model\": \"gpt2\", \"recipe\": \"w4a4\", \"weights\": "
      "\"int8\"}",
      "--recipe w4a4 stores weights as int4, not int8");
  expect(
      "{\"command\": \"analyze\", \"model\": \"gpt2\", \"recipe\": \"w4a4\", \"arithmetic\": "
      "\"int8\"}",
      "--recipe w4a4 multiplies in int4, not int8");
  expect(
      "{\"command\": \"analyze\", \"model\": \"gpt2\", \"recipe\": \"w8a16\", \"arithmetic\": "
      "\"int8\"}",
      "--recipe w8a16 multiplies in the type of --dtype, not int8");
  expect(
      "{\"command\": \"analyze\", \"model\": \"gpt2\", \"recipe\": \"w4a4\", \"weights\": "
      "\"int4\"}",
      "\"status\":0");
}

/* Each hint leads to a command that works. 197 tokens: 14 x 14 patches and the class token. */
static void test_hints(void) {
  expect(
      "{\"command\": \"explain\", \"model\": \"gpt2\", \"crossovers\": true, \"machine\": "
      "\"here\"}",
      "a machine of the catalogue is needed");
  expect("{\"command\": \"analyze\", \"model\": \"vit-base\", \"image_size\": 384}",
         "so --image-size has no effect");
  expect("{\"command\": \"analyze\", \"model\": \"vit-base\", \"images\": 1}",
         "--batch is the number of images");
  expect("{\"command\": \"analyze\", \"model\": \"vit-base\", \"seq\": 100}",
         "use --seq 197, or change image_size in the config");
  expect("{\"command\": \"analyze\", \"model\": \"gpt2\", \"image_size\": \"100x\"}",
         "must be HxW, such as 512x768");
  expect("{\"command\": \"measure\", \"model\": \"layer-rnn\", \"token_ids\": [1, 2]}",
         "layer-rnn reads no tokens");
  expect("{\"command\": \"inspect\", \"path\": \"bert-base\"}",
         "bert-base is a preset, which has no files to inspect");
  expect(
      "{\"command\": \"analyze\", \"model\": \"gpt2\", \"kv_dtype\": \"fp8\", \"kv-dtype\": "
      "\"fp8\"}",
      "--kv-dtype is given twice");
  expect("{\"command\": \"analyze\", \"model\": \"gpt2\", \"batch\": \"8..1\"}",
         "falls: write the smaller number first");
  expect("{\"command\": \"complexity\", \"layers\": \"bert-base\", \"study\": \"generation\"}",
         "leave out the generation, or use a decoder");
}

static void write_file(const char* name, const char* content) {
  FILE* file = fopen(name, "w");
  if (file == NULL || fputs(content, file) < 0 || fclose(file) != 0) ++failures;
}

/* A download that ended before its first byte, a config in place of an index, inputs without any.
 */
static void test_files(void) {
  static const char kGguf[] = "c_api_empty.gguf";
  write_file(kGguf, "");
  expect("{\"command\": \"analyze\", \"model\": \"c_api_empty.gguf\"}",
         "it is damaged or truncated");
  expect("{\"command\": \"inspect\", \"path\": \"c_api_empty.gguf\"}",
         "it is damaged or truncated");
  remove(kGguf);
  write_file("c_api_inputs.json", "{}");
  expect("{\"command\": \"measure\", \"model\": \"bert-tiny\", \"input\": \"c_api_inputs.json\"}",
         "has no inputs");
  remove("c_api_inputs.json");
  write_file("c_api_config.json", "{\"model_type\": \"gpt2\"}");
  expect("{\"command\": \"inspect\", \"path\": \"c_api_config.json\"}",
         "not the index of its files");
  remove("c_api_config.json");
}

static void test_errors(void) {
  expect(NULL, "null pointer");
  expect("", "\"status\":2");
  expect("[1]", "must be an object");
  expect("{}", "must be the name of a command");
  expect("{\"command\": \"analyse\", \"model\": \"bert-base\"}", "did you mean analyze?");
  expect("{\"command\": \"analyze\", \"model\": \"bert-bsae\"}", "did you mean bert-base");
  expect("{\"command\": \"analyze\", \"model\": \"bert-base\", \"sqe\": 1}", "did you mean seq?");
  expect("{\"command\": \"analyze\", \"model\": \"bert-base\", \"seq\": {}}", "cannot be {}");
  expect("{\"command\": \"analyze\", \"model\": \"--help\"}", "\"status\":2");
  expect("{\"command\": \"analyze\", \"model\": \"/no/such/file.json\"}", "missing_resource");
  expect("{\"command\": \"analyze\", \"model\": {\"model_type\": \"nothing_known\"}}",
         "the model type \\\"nothing_known\\\" is unknown");
  headroom_free(NULL);
}

/* Each thread must get the answer that one alone gets. */
static void* run_repeatedly(void* expected) {
  for (int i = 0; i < 20; ++i) {
    char* answer = headroom_run(kGpt2Config);
    if (answer == NULL || strcmp(answer, expected) != 0) return expected;
    headroom_free(answer);
  }
  return NULL;
}

static void test_threads(void) {
  char* expected = headroom_run(kGpt2Config);
  pthread_t threads[4];
  for (int i = 0; i < 4; ++i) pthread_create(&threads[i], NULL, run_repeatedly, expected);
  for (int i = 0; i < 4; ++i) {
    void* failed = NULL;
    pthread_join(threads[i], &failed);
    if (failed != NULL) {
      fprintf(stderr, "thread %d got another answer\n", i);
      ++failures;
    }
  }
  headroom_free(expected);
}

int main(void) {
  test_reports();
  test_verdict();
  test_no_plan();
  test_text();
  test_other_outputs();
  test_contradictions();
  test_hints();
  test_files();
  test_errors();
  test_threads();
  printf("headroom %s: %d failures\n", headroom_version(), failures);
  return failures == 0 ? 0 : 1;
}
