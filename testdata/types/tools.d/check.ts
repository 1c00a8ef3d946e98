import type { Tools } from "../.mcpd/types";

export type Check = Tools["check"];

export default async function (input: Check["input"], ctx: Check["ctx"]): Promise<Check["output"]> {
  const response = await ctx.http.crm.get(`https://crm.internal/${input.id}?limit=${input.limit + 1}`);
  const { total } = await ctx.tools.sum({ amounts: [1, 2] });
  ctx.log.info("looked up", { id: input.id, tool: ctx.call.tool });
  return { name: response.text(), total };
}
