// Written by mcpd types. The globals of scripts besides ES2022, for editors. mcpd does not read this
// file.
/// <reference no-default-lib="true" />
/// <reference lib="es2022" />

/** The arguments of a tool or a prompt, with defaults. You may change them. */
declare const input: any;

/** The URI being read, in resources. */
declare const uri: string;

/** The text to complete, in completions. */
declare const value: string;

/** In resources, the variables of the template. In completions, the values entered so far. */
declare const params: Readonly<Record<string, any>>;

/** The variables of the configuration file. */
declare const vars: Readonly<Record<string, any>>;

/** The agent that the caller claims to be; not in hooks. */
declare const agent: Readonly<{
  agent_id: string;
  model: string | null;
  request_id: string;
  metadata: Readonly<Record<string, string>>;
  verified: boolean;
}>;

/** The call; not in hooks. deadline is in milliseconds since 1970. */
declare const call: Readonly<{
  id: string;
  tool: string;
  via: "client" | "tool" | "test";
  deadline: number;
  /** The nesting depth: 0 for a client's own call. */
  depth: number;
  /** The name of the calling tool; absent for a client's own call. */
  parent?: string;
}>;

/** The event, in hooks. Hooks have no input, agent, call, progress or content. */
declare const event: Readonly<{
  kind: "tool" | "resource" | "prompt" | "completion";
  phase: "start" | "end" | "error";
  /** The name of the tool, the resource or the prompt. */
  tool: string;
  /** For a resource only. */
  uri?: string;
  /** "input_required" at the end of a leg that asks the client; otherwise absent. */
  outcome?: "input_required";
  /** At the end, if an earlier call made the result; otherwise absent. */
  cached?: true;
  call_id: string;
  /** The call_id of the first leg and the number of this leg; not at the start of a later leg. */
  root_id?: string;
  leg?: number;
  via: "client" | "tool" | "test";
  /** For a call by a script: its nesting depth and its parent call. */
  depth?: number;
  parent?: string;
  parent_id?: string;
  principal: any;
  agent: typeof agent;
  arguments: any;
  /** At the end only. */
  result?: any;
  /** At an error only. */
  error?: { code: string; message: string; details?: any };
  /** At the error of a cancelled call. */
  cancelled_by?: "client" | "connection" | "session" | "server";
  cancel_reason?: string;
  /** Not at the start. */
  duration_ms?: number;
  revision: string;
}>;

/** The log of the server, and of the client if the MCP revision supports that. */
declare const log: Record<"debug" | "info" | "warn" | "error", (message: any, fields?: object) => void>;

/** The log of the server only. */
declare const console: Record<"debug" | "error" | "info" | "log" | "trace" | "warn", (...values: any[]) => void>;

/** Reports progress to clients that asked for it. */
declare function progress(done: number, total?: number, message?: string): void;
declare namespace progress {
  /** Closes the connection of the call. Only for a client that can resume and fetch the result. */
  function disconnect(): void;
}

/** A content block, created by a function of content. */
interface ContentBlock {
  readonly type: string;
}

type Bytes = ArrayBuffer | ArrayBufferView;

declare const content: {
  /** Values other than strings become JSON. */
  text(text: any, extra?: object): ContentBlock;
  /** A string must be base64. */
  image(data: string | Bytes, mimeType: string, extra?: object): ContentBlock;
  audio(data: string | Bytes, mimeType: string, extra?: object): ContentBlock;
  resource(from: { uri: string; mimeType?: string; text?: string; data?: string | Bytes }, extra?: object): ContentBlock;
  link(
    from: { uri: string; name: string; title?: string; description?: string; mimeType?: string; size?: number },
    extra?: object,
  ): ContentBlock;
  structured(value: any, blocks?: ContentBlock | ContentBlock[]): object;
};

/** An error whose message the caller sees. */
declare class ToolError extends Error {
  constructor(message: string, options?: { details?: any });
  details?: any;
}

/** An error with a JSON-RPC code. */
declare class RpcError extends Error {
  constructor(code: number, message: string, data?: any);
  code: number;
  data?: any;
}

/** The error of host objects. */
declare class HostError extends Error {
  constructor(message: string, options?: { code?: string });
  code: string;
}

/** The error when the user or model declines, or cancels without an answer. */
declare class AskDenied extends Error {
  constructor(message: string, options?: { reason?: "declined" | "cancelled" });
  reason: "declined" | "cancelled";
}

/** The error when the client cannot answer a request. */
declare class CapabilityError extends Error {
  constructor(message: string, options?: { required?: object });
  /** The MCP capabilities that the client needs. */
  required: Record<string, any>;
}

interface HttpOptions {
  headers?: Record<string, string>;
  /** Set json or body, not both. */
  json?: any;
  body?: string | Bytes | URLSearchParams;
  /** In milliseconds. */
  timeout?: number;
  /** Cancels the request and rejects the promise with the reason. */
  signal?: AbortSignal;
}

interface HttpResponse {
  status: number;
  ok: boolean;
  url: string;
  /** Names are in lower case. */
  headers: Record<string, string>;
  text(): string;
  json(): any;
  bytes(): Uint8Array;
}

interface HttpClient {
  get(url: string | URL, options?: HttpOptions): Promise<HttpResponse>;
  post(url: string | URL, options?: HttpOptions): Promise<HttpResponse>;
  put(url: string | URL, options?: HttpOptions): Promise<HttpResponse>;
  patch(url: string | URL, options?: HttpOptions): Promise<HttpResponse>;
  delete(url: string | URL, options?: HttpOptions): Promise<HttpResponse>;
  request(method: string, url: string | URL, options?: HttpOptions): Promise<HttpResponse>;
}

/** One client per grant: allow { http "crm" { ... } } makes http.crm. */
declare const http: Readonly<Record<string, HttpClient>>;

interface Folder {
  /** max reads at most that many bytes from the start, tail from the end. */
  readText(path: string, options?: { max?: number; tail?: number }): Promise<string>;
  readBytes(path: string, options?: { max?: number; tail?: number }): Promise<Uint8Array>;
  /** The first line is 1. */
  lines(path: string, options?: { from?: number; max?: number }): Promise<string[]>;
  /** Without a path, lists the root. */
  list(path?: string): Promise<{ name: string; type: "file" | "folder" | "other" }[]>;
  /** modified is in milliseconds since 1970. */
  stat(path: string): Promise<{ type: "file" | "folder" | "other"; size: number; modified: number }>;
  /** These three exist if the grant has mode = "rw". */
  writeText(path: string, text: string): Promise<void>;
  writeBytes(path: string, bytes: ArrayBuffer | ArrayBufferView): Promise<void>;
  remove(path: string): Promise<void>;
}

/** One directory per grant: allow { fs "logs" { ... } } makes fs.logs. */
declare const fs: Readonly<Record<string, Folder>>;

/** The set variables that allow { env { names = [...] } } grants. */
declare const env: Readonly<Record<string, string | undefined>>;

/** The secrets that allow { secrets { names = [...] } } grants and the operator reveals. mcpd reads one at its first use and logs each read. */
declare const secrets: Readonly<Record<string, string>>;

interface KeptValues {
  /** undefined if the key has no value. */
  get(key: string): Promise<any>;
  /** ttl is in milliseconds. False if ifAbsent kept an existing value. */
  put(key: string, value: any, options?: { ttl?: number; ifAbsent?: boolean }): Promise<boolean>;
  /** False if the key had no value. */
  delete(key: string): Promise<boolean>;
  /** Replaces the expected value; undefined expects no value. False if the key has another value. */
  cas(key: string, expected: any, value: any): Promise<boolean>;
  /** Keys in order, at most limit; the default is 100. */
  list(prefix?: string, options?: { limit?: number; after?: string }): Promise<string[]>;
  /** Adds by, 1 by default, and returns the sum. */
  incr(key: string, by?: number): Promise<number>;
}

/** Stored values per grant: allow { kv "notes" { ... } } makes kv.notes. */
declare const kv: Readonly<Record<string, KeptValues>>;

interface Ended {
  /** The exit code, or 128 plus the number of the signal that ended the program. */
  code: number;
  stdout: string;
  stderr: string;
  /** The bytes of stdout. */
  bytes(): Uint8Array;
}

/** One program per grant: allow { exec "git" { ... } } makes exec.git. */
declare const exec: Readonly<Record<string, (params?: Record<string, string | number>) => Promise<Ended>>>;

/** A row of a database. Integers beyond 2^53 are strings. */
type Row = Record<string, string | number | boolean | null | Uint8Array>;

interface Database {
  /** Runs a statement block by its name. */
  query(statement: string, params?: Record<string, any>): Promise<Row[]>;
  /** Runs a statement that changes rows. Exists if the grant has mode = "rw". */
  exec(statement: string, params?: Record<string, any>): Promise<{ changes: number }>;
  /** Opens a file below the root of the grant, if it has one. */
  open(path: string): Promise<Pick<Database, "query">>;
}

/** Objects of the program that embeds mcpd: allow { module "ledger" { ... } } makes modules.ledger. */
declare const modules: Readonly<Record<string, Readonly<Record<string, (args?: object) => Promise<any>>>>>;

/** One function per tool that the grant names. If the call fails, it throws a HostError with its code. */
declare const tools: Readonly<Record<string, (args?: object) => Promise<any>>>;

/** One database object per grant: allow { sql "shop" { ... } } makes sql.shop. */
declare const sql: Readonly<Record<string, Database>>;

/** A request created by elicit.form, elicit.url, sample.message or roots.list. */
interface AskRequest<Answer> {
  readonly answer?: Answer;
}

interface Accepted {
  action: "accept";
  /** The entered values; for a form only. */
  content?: Record<string, any>;
}

/** The result of ask for a declined request. */
interface Refused {
  action: "decline" | "cancel";
}

interface ElicitForm {
  message: string;
  /** A JSON Schema of type object, without nested objects. */
  schema: object;
}

interface ElicitPage {
  message: string;
  url: string | URL;
  elicitationId?: string;
}

interface SampleOptions {
  /** Set prompt or messages, not both. */
  prompt?: string;
  messages?: { role: "user" | "assistant"; content: string | object | object[] }[];
  systemPrompt?: string;
  /** Priorities are numbers from 0 to 1. */
  modelPreferences?: {
    hints?: { name?: string }[];
    costPriority?: number;
    speedPriority?: number;
    intelligencePriority?: number;
    /** @deprecated write costPriority */
    costLevel?: number;
    /** @deprecated write intelligencePriority */
    intelligenceLevel?: number;
  };
  /** 1,000 by default. */
  maxTokens?: number;
  temperature?: number;
  stopSequences?: string[];
  includeContext?: "none" | "thisServer" | "allServers";
  metadata?: object;
  tools?: object[];
  toolChoice?: { mode?: "auto" | "required" | "none" };
}

interface SampleMessage {
  role: "user" | "assistant";
  content: any;
  model: string;
  stopReason?: string;
}

interface Root {
  uri: string;
  name?: string;
}

/** Asks the user: allow { ask { elicit = true } }. Throws AskDenied if declined. */
declare const elicit: {
  (question: ElicitForm | ElicitPage): Promise<Accepted>;
  (key: string, question: ElicitForm | ElicitPage): Promise<Accepted>;
  form(question: ElicitForm): AskRequest<Accepted | Refused>;
  url(question: ElicitPage): AskRequest<Accepted | Refused>;
};

/** Asks the client's model: allow { ask { sample = true } }. Throws AskDenied if declined. */
declare const sample: {
  (options: SampleOptions): Promise<SampleMessage>;
  (key: string, options: SampleOptions): Promise<SampleMessage>;
  message(options: SampleOptions): AskRequest<SampleMessage | Refused>;
};

/** Asks the client for its roots: allow { ask { roots = true } }. */
declare const roots: {
  (key?: string): Promise<Root[]>;
  list(): AskRequest<Root[] | Refused>;
};

/** Asks several questions at once. */
declare function ask<T extends Record<string, AskRequest<any>>>(
  requests: T,
): Promise<{ [K in keyof T]: T[K] extends AskRequest<infer Answer> ? Answer : never }>;

declare function setTimeout(run: (...args: any[]) => void, milliseconds?: number, ...args: any[]): number;
declare function setInterval(run: (...args: any[]) => void, milliseconds?: number, ...args: any[]): number;
declare function clearTimeout(id?: number): void;
declare function clearInterval(id?: number): void;
declare function queueMicrotask(run: () => void): void;

type DateLike = Date | number | string;
type DateUnit = "year" | "month" | "week" | "day" | "hour" | "minute" | "second" | "millisecond";

/** Zones are IANA names such as "Europe/Berlin", UTC by default. */
declare const dates: {
  /** Without a pattern, ISO 8601. */
  parse(text: string, pattern?: string, options?: { zone?: string }): Date;
  format(date: DateLike, pattern?: string, options?: { zone?: string }): string;
  /** weekday is 1 on Monday; offset is in minutes. */
  parts(date: DateLike, options?: { zone?: string }): Record<
    "year" | "month" | "day" | "hour" | "minute" | "second" | "millisecond" | "weekday" | "offset",
    number
  >;
  add(date: DateLike, amount: { [unit in `${DateUnit}s`]?: number }, options?: { zone?: string }): Date;
  /** Whole units from the first to the second. */
  diff(from: DateLike, to: DateLike, unit: DateUnit, options?: { zone?: string }): number;
  startOf(date: DateLike, unit: DateUnit | "quarter", options?: { zone?: string }): Date;
};

declare const numbers: {
  format(n: number, options?: { decimals?: number; group?: string; point?: string }): string;
  parse(text: string, options?: { group?: string; point?: string }): number;
  formatBytes(bytes: number, options?: { decimals?: number; base?: 1000 | 1024 }): string;
  parseBytes(text: string): number;
  formatDuration(milliseconds: number): string;
  parseDuration(text: string): number;
};

declare const toml: {
  parse(text: string): Record<string, any>;
  print(value: object): string;
};

declare const yaml: {
  /** With all, a list of documents. */
  parse(text: string, options?: { all?: boolean }): any;
  print(value: any): string;
};

declare const csv: {
  /** With header, one object per line after the first, whose fields name the members. */
  parse(text: string, options: { header: true; separator?: string }): Record<string, string>[];
  parse(text: string, options?: { header?: false; separator?: string }): string[][];
  /** header lists the columns of objects; false omits the header line. */
  print(rows: any[][] | Record<string, any>[], options?: { header?: boolean | string[]; separator?: string }): string;
};

declare class AbortController {
  readonly signal: AbortSignal;
  abort(reason?: any): void;
}

declare class AbortSignal {
  private constructor();
  static abort(reason?: any): AbortSignal;
  static timeout(milliseconds: number): AbortSignal;
  static any(signals: Iterable<AbortSignal>): AbortSignal;
  readonly aborted: boolean;
  readonly reason: any;
  onabort?: (event: { type: "abort"; target: AbortSignal }) => void;
  throwIfAborted(): void;
  addEventListener(type: "abort", listener: (event: { type: "abort"; target: AbortSignal }) => void, options?: { once?: boolean }): void;
  removeEventListener(type: "abort", listener: (...args: any[]) => void): void;
}

declare class URL {
  constructor(url: string | URL, base?: string | URL);
  static canParse(url: string | URL, base?: string | URL): boolean;
  href: string;
  readonly origin: string;
  protocol: string;
  username: string;
  password: string;
  host: string;
  hostname: string;
  port: string;
  pathname: string;
  search: string;
  readonly searchParams: URLSearchParams;
  hash: string;
  toString(): string;
  toJSON(): string;
}

declare class URLSearchParams {
  constructor(from?: string | URLSearchParams | string[][] | Record<string, any>);
  readonly size: number;
  append(name: string, value: string): void;
  delete(name: string): void;
  get(name: string): string | null;
  getAll(name: string): string[];
  has(name: string): boolean;
  set(name: string, value: string): void;
  sort(): void;
  entries(): IterableIterator<[string, string]>;
  keys(): IterableIterator<string>;
  values(): IterableIterator<string>;
  forEach(visit: (value: string, name: string, from: URLSearchParams) => void): void;
  toString(): string;
  [Symbol.iterator](): IterableIterator<[string, string]>;
}

declare class TextEncoder {
  readonly encoding: "utf-8";
  encode(text?: string): Uint8Array;
}

declare class TextDecoder {
  constructor(label?: "utf-8" | "utf8", options?: { fatal?: boolean; ignoreBOM?: boolean });
  readonly encoding: "utf-8";
  decode(data?: Bytes): string;
}

declare function atob(base64: string): string;
declare function btoa(text: string): string;
declare function structuredClone<T>(value: T): T;

interface CryptoKey {
  readonly type: "secret";
}

type HashName = "SHA-1" | "SHA-256" | "SHA-384" | "SHA-512";

declare const crypto: {
  randomUUID(): string;
  getRandomValues<T extends ArrayBufferView>(array: T): T;
  readonly subtle: {
    digest(algorithm: HashName | { name: HashName }, data: Bytes): Promise<ArrayBuffer>;
    importKey(
      format: "raw",
      data: Bytes,
      algorithm: { name: "HMAC"; hash: HashName | { name: HashName } },
      extractable: boolean,
      usages: string[],
    ): Promise<CryptoKey>;
    sign(algorithm: "HMAC" | { name: "HMAC" }, key: CryptoKey, data: Bytes): Promise<ArrayBuffer>;
    verify(algorithm: "HMAC" | { name: "HMAC" }, key: CryptoKey, signature: Bytes, data: Bytes): Promise<boolean>;
  };
};
