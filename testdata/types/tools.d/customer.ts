import type { Templates } from "../.mcpd/types";

export default function (params: Templates["customer"]["params"], { uri, log }: Templates["customer"]["ctx"]) {
  log.info("read", { uri });
  return { id: params.id, team: params.team.toUpperCase() };
}
