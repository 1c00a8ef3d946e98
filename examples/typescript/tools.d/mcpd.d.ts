// What every tool body knows, for editors. mcpd does not read this file.

declare const input: any;
declare const vars: Readonly<Record<string, any>>;
declare const agent: Readonly<{
  agent_id: string;
  model: string | null;
  request_id: string;
  metadata: Readonly<Record<string, string>>;
  verified: boolean;
}>;
declare const call: Readonly<{ id: string; tool: string; via: "client" | "test"; deadline: number }>;

declare const log: Record<"debug" | "info" | "warn" | "error", (message: string, fields?: object) => void>;
declare function progress(done: number, total?: number, message?: string): void;

declare class ToolError extends Error {
  constructor(message: string, details?: unknown);
}
