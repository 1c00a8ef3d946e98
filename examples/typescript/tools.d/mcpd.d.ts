// What every body knows beside ES2022, for editors. mcpd does not read this file.
/// <reference no-default-lib="true" />
/// <reference lib="es2022" />

/** The arguments of a tool or a prompt, complete with defaults; yours to change. */
declare const input: any;

/** What is read, in resources. */
declare const uri: string;

/** The text to complete, in completions. */
declare const value: string;

/** The variables of the template, in resources; what is filled in already, in completions. */
declare const params: Readonly<Record<string, any>>;

/** The variables of the operator's file. */
declare const vars: Readonly<Record<string, any>>;

/** Who the caller claims to be; not in hooks. */
declare const agent: Readonly<{
  agent_id: string;
  model: string | null;
  request_id: string;
  metadata: Readonly<Record<string, string>>;
  verified: boolean;
}>;

/** The call, but not in hooks; deadline is in milliseconds since 1970. */
declare const call: Readonly<{
  id: string;
  tool: string;
  via: "client" | "tool" | "test";
  deadline: number;
  /** How many calls of tools it is nested in: 0 for a client's own. */
  depth: number;
  /** The name of what made the call; absent of a client's own. */
  parent?: string;
}>;

/** What happened, in hooks; they have neither input, agent, call, progress nor content. */
declare const event: Readonly<{
  kind: "tool" | "resource" | "prompt" | "completion";
  phase: "start" | "end" | "error";
  /** The name of the tool, the resource or the prompt. */
  tool: string;
  /** Of a resource only. */
  uri?: string;
  /** "input_required" at the end of a leg that asks; else absent. */
  outcome?: "input_required";
  /** At the end, when the result was made by an earlier call; else absent. */
  cached?: true;
  call_id: string;
  /** The call_id of the first leg, and which leg this is; not at the start of a later leg. */
  root_id?: string;
  leg?: number;
  via: "client" | "tool" | "test";
  /** Of a call that a body makes: how deep it is nested, and in which. */
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
  /** At the error of a call that was cancelled. */
  cancelled_by?: "client" | "connection" | "session" | "server";
  cancel_reason?: string;
  /** Not at the start. */
  duration_ms?: number;
  revision: string;
}>;

/** The operator's log, and the client's where MCP provides for it. */
declare const log: Record<"debug" | "info" | "warn" | "error", (message: any, fields?: object) => void>;

/** The operator's log only. */
declare const console: Record<"debug" | "error" | "info" | "log" | "trace" | "warn", (...values: any[]) => void>;

/** Tells clients that asked for it how far the call is. */
declare function progress(done: number, total?: number, message?: string): void;
declare namespace progress {
  /** Closes the connection that waits for the result, for a client that can come back for it. */
  function disconnect(): void;
}

/** A block of rich content, made by one of the functions of content. */
interface ContentBlock {
  readonly type: string;
}

type Bytes = ArrayBuffer | ArrayBufferView;

declare const content: {
  /** Anything but a string becomes JSON. */
  text(text: any, extra?: object): ContentBlock;
  /** Text is taken to be base64. */
  image(data: string | Bytes, mimeType: string, extra?: object): ContentBlock;
  audio(data: string | Bytes, mimeType: string, extra?: object): ContentBlock;
  resource(from: { uri: string; mimeType?: string; text?: string; data?: string | Bytes }, extra?: object): ContentBlock;
  link(
    from: { uri: string; name: string; title?: string; description?: string; mimeType?: string; size?: number },
    extra?: object,
  ): ContentBlock;
  structured(value: any, blocks?: ContentBlock | ContentBlock[]): object;
};

/** A failure that callers are told politely. */
declare class ToolError extends Error {
  constructor(message: string, options?: { details?: any });
  details?: any;
}

/** A failure with a code of JSON-RPC. */
declare class RpcError extends Error {
  constructor(code: number, message: string, data?: any);
  code: number;
  data?: any;
}

/** What host objects throw. */
declare class HostError extends Error {
  constructor(message: string, options?: { code?: string });
  code: string;
}

/** What who was asked refused, or dismissed without an answer. */
declare class AskDenied extends Error {
  constructor(message: string, options?: { reason?: "declined" | "cancelled" });
  reason: "declined" | "cancelled";
}

/** What no client of the call can answer. */
declare class CapabilityError extends Error {
  constructor(message: string, options?: { required?: object });
  /** The capabilities that a client needs, as MCP names them. */
  required: Record<string, any>;
}

interface HttpOptions {
  headers?: Record<string, string>;
  /** One of json and body. */
  json?: any;
  body?: string | Bytes | URLSearchParams;
  /** Milliseconds. */
  timeout?: number;
  /** Lets go of the request; the promise is rejected with the reason. */
  signal?: AbortSignal;
}

interface HttpResponse {
  status: number;
  ok: boolean;
  url: string;
  /** The names are in lower case. */
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

/** One client for every grant: allow { http "crm" { ... } } makes http.crm. */
declare const http: Readonly<Record<string, HttpClient>>;

interface Folder {
  /** max asks for so many bytes from the beginning, tail for so many from the end. */
  readText(path: string, options?: { max?: number; tail?: number }): Promise<string>;
  readBytes(path: string, options?: { max?: number; tail?: number }): Promise<Uint8Array>;
  /** Lines are counted from 1. */
  lines(path: string, options?: { from?: number; max?: number }): Promise<string[]>;
  /** Without a path, the root itself. */
  list(path?: string): Promise<{ name: string; type: "file" | "folder" | "other" }[]>;
  /** modified is in milliseconds since 1970. */
  stat(path: string): Promise<{ type: "file" | "folder" | "other"; size: number; modified: number }>;
  /** These three exist where the grant has mode = "rw". */
  writeText(path: string, text: string): Promise<void>;
  writeBytes(path: string, bytes: ArrayBuffer | ArrayBufferView): Promise<void>;
  remove(path: string): Promise<void>;
}

/** One folder for every grant: allow { fs "logs" { ... } } makes fs.logs. */
declare const fs: Readonly<Record<string, Folder>>;

/** The variables that allow { env { names = [...] } } grants and that are set. */
declare const env: Readonly<Record<string, string | undefined>>;

/** The secrets that allow { secrets { names = [...] } } grants and the operator reveals. Each look at one that was not read is recorded. */
declare const secrets: Readonly<Record<string, string>>;

interface KeptValues {
  /** undefined when the key holds nothing. */
  get(key: string): Promise<any>;
  /** ttl is in milliseconds. False when ifAbsent kept what the key holds. */
  put(key: string, value: any, options?: { ttl?: number; ifAbsent?: boolean }): Promise<boolean>;
  /** False when the key held nothing. */
  delete(key: string): Promise<boolean>;
  /** Puts a value in the place of what is expected; undefined expects nothing. False when the key holds something else. */
  cas(key: string, expected: any, value: any): Promise<boolean>;
  /** Keys in order, 100 unless limit says otherwise. */
  list(prefix?: string, options?: { limit?: number; after?: string }): Promise<string[]>;
  /** Adds 1 unless by says otherwise, and answers the sum. */
  incr(key: string, by?: number): Promise<number>;
}

/** Values for every grant: allow { kv "notes" { ... } } makes kv.notes. */
declare const kv: Readonly<Record<string, KeptValues>>;

interface Ended {
  /** The exit code; 128 and its number of a program that a signal has ended. */
  code: number;
  stdout: string;
  stderr: string;
  /** What stands in stdout, byte for byte. */
  bytes(): Uint8Array;
}

/** A program for every grant: allow { exec "git" { ... } } makes exec.git. */
declare const exec: Readonly<Record<string, (params?: Record<string, string | number>) => Promise<Ended>>>;

/** A row of a database: whole numbers beyond 2^53 are strings. */
type Row = Record<string, string | number | boolean | null | Uint8Array>;

interface Database {
  /** Runs a statement block by its name. */
  query(statement: string, params?: Record<string, any>): Promise<Row[]>;
  /** The same for what changes rows, where the grant has mode = "rw". */
  exec(statement: string, params?: Record<string, any>): Promise<{ changes: number }>;
  /** Opens a file below the root of the grant, where it has one. */
  open(path: string): Promise<Pick<Database, "query">>;
}

/** Objects of the program that embeds mcpd: allow { module "ledger" { ... } } makes modules.ledger. */
declare const modules: Readonly<Record<string, Readonly<Record<string, (args?: object) => Promise<any>>>>>;

/** A function for each tool that the grant names; it throws a HostError with the code of a call that fails. */
declare const tools: Readonly<Record<string, (args?: object) => Promise<any>>>;

/** Databases for every grant: allow { sql "shop" { ... } } makes sql.shop. */
declare const sql: Readonly<Record<string, Database>>;

/** A request that elicit.form, elicit.url, sample.message or roots.list made. */
interface AskRequest<Answer> {
  readonly answer?: Answer;
}

interface Accepted {
  action: "accept";
  /** What was filled in; of a form only. */
  content?: Record<string, any>;
}

/** What ask answers for a request that was refused. */
interface Refused {
  action: "decline" | "cancel";
}

interface ElicitForm {
  message: string;
  /** A JSON Schema of the type object, without nested objects. */
  schema: object;
}

interface ElicitPage {
  message: string;
  url: string | URL;
  elicitationId?: string;
}

interface SampleOptions {
  /** One of prompt and messages. */
  prompt?: string;
  messages?: { role: "user" | "assistant"; content: string | object | object[] }[];
  systemPrompt?: string;
  /** The priorities are numbers from 0 to 1. */
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
  /** 1,000 unless given. */
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

/** Asks the user: allow { ask { elicit = true } }. A refusal throws AskDenied. */
declare const elicit: {
  (question: ElicitForm | ElicitPage): Promise<Accepted>;
  (key: string, question: ElicitForm | ElicitPage): Promise<Accepted>;
  form(question: ElicitForm): AskRequest<Accepted | Refused>;
  url(question: ElicitPage): AskRequest<Accepted | Refused>;
};

/** Asks the client's model: allow { ask { sample = true } }. A refusal throws AskDenied. */
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

/** Asks several things at once. */
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

/** Zones are IANA names such as "Europe/Berlin", and UTC unless given. */
declare const dates: {
  /** Without a pattern, ISO 8601. */
  parse(text: string, pattern?: string, options?: { zone?: string }): Date;
  format(date: DateLike, pattern?: string, options?: { zone?: string }): string;
  /** weekday is 1 on Monday, offset in minutes. */
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
  /** With header, one object for every line but the first, whose fields name the members. */
  parse(text: string, options: { header: true; separator?: string }): Record<string, string>[];
  parse(text: string, options?: { header?: false; separator?: string }): string[][];
  /** header lists the columns of objects, and false leaves their line out. */
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
