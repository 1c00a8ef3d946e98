import type { RunComplete, Templates } from "../.mcpd/types";

export default ((value, ctx) =>
  ["C-1042", "C-1043"].filter((id) => id.startsWith(value) && ctx.params.team !== "none")) satisfies RunComplete<Templates["customer"]>;
