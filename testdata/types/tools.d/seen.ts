import type { RunHook } from "../.mcpd/types";

export default ((event, ctx) => {
  ctx.log.info("seen", { tool: event.tool });
}) satisfies RunHook<"seen">;
