// The engine beside the page, so that a long search leaves the page alive.
import { Engine, type ModelFile, type Module, type Request } from "./explorer_engine";

declare function importScripts(...urls: string[]): void;
declare function createHeadroom(options: { wasmBinary: ArrayBuffer }): Promise<Module>;
declare const self: {
  onmessage: ((event: { data: Job }) => void) | null;
  postMessage(done: Done): void;
};

/// A request, or files to place first under the name of a slot.
export interface Job {
  id: number;
  request?: Request;
  slot?: string;
  files?: readonly ModelFile[];
}

/// An answer's JSON, the name of the placed model, or why there is none.
export interface Done {
  id: number;
  result?: string;
  failure?: string;
}

const binary = unpacked("engine.wasm.gz"); // while the script is fetched
importScripts("engine.js");
const engine = binary.then(async (wasmBinary) => new Engine(await createHeadroom({ wasmBinary })));

/// The content of a file that is packed with gzip, unless the server says so and the browser has unpacked it.
async function unpacked(file: string): Promise<ArrayBuffer> {
  const content = await (await fetch(file)).arrayBuffer();
  const [first, second] = new Uint8Array(content);
  if (first !== 0x1f || second !== 0x8b) return content;
  return new Response(new Blob([content]).stream().pipeThrough(new DecompressionStream("gzip"))).arrayBuffer();
}

async function resultOf({ request, slot, files }: Job): Promise<string> {
  const ready = await engine;
  if (slot !== undefined && files !== undefined) return ready.place(slot, files);
  return ready.run(request ?? {});
}

// One after another: files of a job may be those of the next.
let last: Promise<void> = Promise.resolve();
self.onmessage = ({ data }) => {
  last = last.then(async () => {
    try {
      self.postMessage({ id: data.id, result: await resultOf(data) });
    } catch (error) {
      self.postMessage({ id: data.id, failure: String(error) });
    }
  });
};
