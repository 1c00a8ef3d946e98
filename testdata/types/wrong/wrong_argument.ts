// TS2322
import type { Tools } from "../.mcpd/types";

type Check = Tools["check"];

export default async function (input: Check["input"], ctx: Check["ctx"]): Promise<Check["output"]> {
  await ctx.tools.sum({ amounts: ["1"] });
  return { name: input.id, total: 1 };
}
