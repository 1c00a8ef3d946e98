// @ts-check
/** @type {import("../.mcpd/types").RunResource<"stage">} */
export default (_, ctx) => `${ctx.uri} of ${ctx.agent.agent_id}`;
