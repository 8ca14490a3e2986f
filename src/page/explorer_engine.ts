// The engine: headroom compiled to WebAssembly, behind the functions of headroom_c.h.

/// What of emscripten's module is used.
export interface Module {
  _headroom_run(request: number): number;
  _headroom_free(answer: number): void;
  allocateUTF8(text: string): number;
  _free(address: number): void;
  UTF8ToString(address: number): string;
  FS: {
    mkdirTree(path: string): void;
    writeFile(path: string, content: string | Uint8Array): void;
    readdir(path: string): string[];
    unlink(path: string): void;
    rmdir(path: string): void;
    chdir(path: string): void;
    lookupPath(path: string): { node: Node };
  };
}

interface Node {
  node_ops: { getattr(node: Node): { size: number } };
}

/// A file as a browser or Node gives it: its bytes are read when they are asked for.
export interface ModelFile {
  name: string;
  size: number;
  slice(begin: number, end: number): { arrayBuffer(): Promise<ArrayBuffer> };
}

export type Request = Record<string, unknown>;

export interface Answer {
  status: number;
  messages: string[];
  report?: unknown;
  text?: string;
  error?: { code: string; message: string; where: string; hint: string };
}

/// As in src/explorer/mapped_file.cpp, which reads no further.
const kLongestHead = 64 * 1024 * 1024;

const kFolder = "/models";

export class Engine {
  constructor(private readonly module: Module) {
    module.FS.mkdirTree(kFolder);
    module.FS.chdir(kFolder);
  }

  /// The answer to a request, as JSON text: its integers may exceed a script's.
  run(request: Request): string {
    const text = this.module.allocateUTF8(JSON.stringify(request));
    const answer = this.module._headroom_run(text);
    this.module._free(text);
    if (answer === 0) throw new Error("out of memory");
    const json = this.module.UTF8ToString(answer);
    this.module._headroom_free(answer);
    return json;
  }

  /// Places the beginnings of a model's files in `slot` and returns the model's name for requests.
  async place(slot: string, files: readonly ModelFile[]): Promise<string> {
    const folder = `${slot}/${await nameOf(files)}`;
    this.remove(`${kFolder}/${slot}`);
    this.module.FS.mkdirTree(`${kFolder}/${folder}`);
    for (const file of files) await this.write(`${kFolder}/${folder}/${file.name}`, file);
    const gguf = files.map((file) => file.name).filter((name) => name.endsWith(".gguf")).sort()[0];
    return gguf === undefined ? folder : `${folder}/${gguf}`;
  }

  private async write(path: string, file: ModelFile): Promise<void> {
    const head = await file.slice(0, Math.min(file.size, kLongestHead)).arrayBuffer();
    this.module.FS.writeFile(path, new Uint8Array(head));
    if (file.size <= head.byteLength) return;
    // The file has its own size, of which the engine counts, and the bytes of its beginning.
    const { node } = this.module.FS.lookupPath(path);
    const { getattr } = node.node_ops;
    node.node_ops = {
      ...node.node_ops,
      getattr: (of) => Object.assign(getattr(of), of === node ? { size: file.size } : {}),
    };
  }

  /// Removes what is in `slot`: folders of files.
  private remove(slot: string): void {
    const { FS } = this.module;
    FS.mkdirTree(slot);
    const within = (folder: string) =>
      FS.readdir(folder).filter((name) => name !== "." && name !== "..").map((name) => `${folder}/${name}`);
    for (const folder of within(slot)) {
      for (const file of within(folder)) FS.unlink(file);
      FS.rmdir(folder);
    }
  }
}

function isConfig(file: ModelFile): boolean {
  return file.name === "config.json";
}

/// A folder's name for the model: that of its config.json, else of its first file.
async function nameOf(files: readonly ModelFile[]): Promise<string> {
  const config = files.find(isConfig);
  const stem = (files[0]?.name ?? "model").replace(/(-00001-of-\d+)?\.\w+$/, "");
  if (config === undefined) return stem;
  try {
    const bytes = await config.slice(0, config.size).arrayBuffer();
    const { _name_or_path, model_type } = JSON.parse(new TextDecoder().decode(bytes));
    const last = String(_name_or_path || model_type || "model").split("/").pop() ?? "";
    return /^[^.\0][^\0]*$/.test(last) ? last : "model";
  } catch {
    return "model"; // the engine says what is wrong with it
  }
}
