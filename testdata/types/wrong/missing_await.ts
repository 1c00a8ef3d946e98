// TS2339
import type { Tools } from "../.mcpd/types";

type Check = Tools["check"];

export default async function (input: Check["input"], ctx: Check["ctx"]): Promise<Check["output"]> {
  ctx.log.info(ctx.http.crm.get("https://crm.internal/").status);
  return { name: input.id, total: 1 };
}
