import type { RunComplete, Prompts } from "../.mcpd/types";

export default (async (value, { params }) => ["Ada", "Grace"].filter((name) => name.startsWith(params.name ?? value))) satisfies RunComplete<
  Prompts["greet"]
>;
