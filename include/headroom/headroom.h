// headroom: the cost of a transformer. Read this header first; it includes the whole public API.
//
//   #include <headroom/headroom.h>
//
//   using namespace headroom;
//   WorkloadRequest request;                       // prefill, batch 1, 128 tokens, float32
//   AnalyzeReport report = make_analyze_report(load_model("bert-base"), request);
//   report.figures.parameters;                     // 109482240
//   report.analysis.total.forward.matrix_flops;    // an Expr in l, b, s, h, k, d
//
// Data runs one way:
//
//   load_model        model_source.h   preset, config.json or folder -> Model with its ModelSpec
//   inspect           model_source.h   files -> Inspection: every tensor and its owner
//   resolve           workload.h       what is asked -> Workload, all defaults filled in
//   build_graph       graph.h          ModelSpec -> Graph: operators over symbolic sizes
//   analyze           analysis.h       Graph -> Analysis: every figure as an Expr
//   Evaluator         analysis.h       Analysis x Workload -> numbers, in microseconds
//   predict_time      predict.h        Workload x MachineProfile -> time by operator
//   compare           compare.h        prediction x measurement -> rows and a verdict
//   shard             parallel_plan.h  Graph x ParallelPlan -> Graph of one rank
//   Planner           plan.h           plan x load -> memory and time of the worst rank
//   timeline_of       timeline.h       durations of a training step -> every pass, placed
//   search_plans      plan.h           all legal plans -> the best ones
//   engine_rates      engine_rates.h   machine x engine -> the rates that a plan's times have
//   engine_command    engine_command.h  plan -> the command line of an engine that runs it
//   make_device_choice_report  device_choice.h  machines -> the fewest devices of each
//   make_split_report  memory_split.h  device and host -> the parts of a model in each memory
//   fit_rates         rate_fit.h       measured runs -> efficiencies of a machine
//   sweep             report.h         grid of workloads -> rows
//   layer_complexity  complexity.h     a layer's orders of growth, crossovers, exponents
//   make_…_report     report.h         typed reports
//   import_runs       compare.h        JSON of headroom and other engines -> runs to compare
//   read_engine_log   engine_log.h     start-up log of vLLM or llama.cpp -> its figures
//   render            report.h         report -> table, JSON, CSV, Markdown or HTML
//
// Every function that can fail throws headroom::Error (error.h).
#pragma once

#include "headroom/analysis.h"
#include "headroom/attention_op.h"
#include "headroom/attention_spec.h"
#include "headroom/bound_seconds.h"
#include "headroom/collective_rates.h"
#include "headroom/compare.h"
#include "headroom/complexity.h"
#include "headroom/device_choice.h"
#include "headroom/engine_command.h"
#include "headroom/engine_log.h"
#include "headroom/engine_rates.h"
#include "headroom/error.h"
#include "headroom/expr.h"
#include "headroom/fewest_devices.h"
#include "headroom/graph.h"
#include "headroom/image_op.h"
#include "headroom/input_spec.h"
#include "headroom/layer_spec.h"
#include "headroom/lightning_form.h"
#include "headroom/llama_cpp_rates.h"
#include "headroom/machine_names.h"
#include "headroom/machine_profile.h"
#include "headroom/measurement.h"
#include "headroom/memory_split.h"
#include "headroom/model_source.h"
#include "headroom/model_spec.h"
#include "headroom/no_plan_fits.h"
#include "headroom/op.h"
#include "headroom/parallel_plan.h"
#include "headroom/plan.h"
#include "headroom/predict.h"
#include "headroom/rate_fit.h"
#include "headroom/report.h"
#include "headroom/serve.h"
#include "headroom/state_op.h"
#include "headroom/storage.h"
#include "headroom/system.h"
#include "headroom/tiled_tower.h"
#include "headroom/timeline.h"
#include "headroom/train_time.h"
#include "headroom/workload.h"
