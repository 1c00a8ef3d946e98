import type { Tools } from "../.mcpd/types";
import { toRoman } from "./numerals.ts";

export default function (input: Tools["to_roman"]["input"]): Tools["to_roman"]["output"] {
  return { roman: toRoman(input.number) };
}
