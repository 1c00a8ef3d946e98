import type { RunPrompt } from "../.mcpd/types";

export default ((input, ctx) => [{ role: "user", content: ctx.content.text(`Greet ${input.name}.`) }]) satisfies RunPrompt<"greet">;
