#!/usr/bin/env node
// Times an ONNX file in ONNX Runtime on the CPU; prints one JSON object. NODE_PATH is the
// node_modules folder with onnxruntime-node.
'use strict';

const {parseArgs} = require('node:util');
const ort = require('onnxruntime-node');

const kVocabulary = 30522;

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
  const tensor = (value) => new ort.Tensor(
      'int64', BigInt64Array.from({length: batch * seq}, () => BigInt(value())), [batch, seq]);
  const inputs = {
    ids: tensor(() => Math.floor(Math.random() * kVocabulary)),
    types: tensor(() => 0),
    mask: tensor(() => 1),
  };
  const feeds = Object.fromEntries(session.inputNames.map((name) => [name, inputs[name]]));
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
