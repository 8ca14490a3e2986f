#!/usr/bin/env node
// Times an ONNX file of export_onnx.py in ONNX Runtime on the CPU; prints one JSON object. NODE_PATH is
// the node_modules folder with onnxruntime-node.
'use strict';

const {readFileSync} = require('node:fs');
const {parseArgs} = require('node:util');
const ort = require('onnxruntime-node');

// Random values of an input that export_onnx.py describes.
function tensor(input, sizes) {
  const shape = input.shape.map((size) => sizes[size] ?? size);
  const length = shape.reduce((product, size) => product * size, 1);
  if (input.constant === null && input.below === 0)
    return new ort.Tensor('float32', Float32Array.from({length}, () => Math.random() - 0.5), shape);
  const value = () => input.constant ?? Math.floor(Math.random() * input.below);
  return new ort.Tensor('int64', BigInt64Array.from({length}, () => BigInt(value())), shape);
}

function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

async function main() {
  const {values, positionals} = parseArgs({
    allowPositionals: true,
    options: {
      batch: {type: 'string', default: '1'},
      seq: {type: 'string', default: '128'},
      threads: {type: 'string', default: '1'},
      runs: {type: 'string', default: '10'},
      warmup: {type: 'string', default: '3'},
      save: {type: 'string'},
    },
  });
  const batch = Number(values.batch);
  const seq = Number(values.seq);
  const threads = Number(values.threads);
  const session = await ort.InferenceSession.create(positionals[0], {
    executionProviders: ['cpu'],
    graphOptimizationLevel: 'all',
    intraOpNumThreads: threads,
    interOpNumThreads: 1,
    executionMode: 'sequential',
    ...(values.save ? {optimizedModelFilePath: values.save} : {}),
  });
  const inputs = JSON.parse(readFileSync(positionals[0].replace(/\.onnx$/, '.json')));
  const feeds = Object.fromEntries(inputs.map((input) => [input.name, tensor(input, {batch, seq})]));
  const samples = [];
  for (let run = 0; run < Number(values.warmup) + Number(values.runs); ++run) {
    const start = process.hrtime.bigint();
    await session.run(feeds);
    const taken = Number(process.hrtime.bigint() - start) * 1e-9;
    if (run >= Number(values.warmup)) samples.push(taken);
  }
  console.log(JSON.stringify({
    engine: 'onnxruntime',
    version: ort.env.versions.node,
    threads,
    median_s: median(samples),
    min_s: Math.min(...samples),
    samples_s: samples,
  }));
}

main();
