// TS2339
import type { Templates } from "../.mcpd/types";

export default function (params: Templates["customer"]["params"]) {
  return { id: params.idd };
}
