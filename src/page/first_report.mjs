// Makes the report that the page opens with, so that it is there before the engine is.
//
//   node first_report.mjs FOLDER_OF_ENGINE FILE
import { readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join, resolve } from "node:path";

const [folder, file] = process.argv.slice(2);
const createHeadroom = createRequire(import.meta.url)(resolve(folder, "engine.js"));
const engine = await createHeadroom({ wasmBinary: readFileSync(join(folder, "engine.wasm")) });
// The fields of explorer.html as they are written there.
const request = engine.allocateUTF8(JSON.stringify({ command: "analyze", model: "llama-3.2-1b", format: "html" }));
const { status, text, error } = JSON.parse(engine.UTF8ToString(engine._headroom_run(request)));
if (status !== 0) throw new Error(error.message);
writeFileSync(file, text);
