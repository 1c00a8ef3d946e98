# Scripts in TypeScript: one in its own file, one inline. mcpd strips types when it
# loads the tools. Your editor and tsc check them, after mcpd types has written the
# types of the tools.

tool "to_roman" {
  description = "Writes a whole number in Roman numerals. Returns {roman}."
  read_only   = true

  input "number" {
    type = integer
    min  = 1
    max  = 3999
  }

  output "roman" {
    type    = string
    pattern = "^[IVXLCDM]+$"
  }

  run = file("to_roman.ts")
}

tool "from_roman" {
  description = "Reads Roman numerals. Returns {number}."
  read_only   = true

  input "roman" {
    type       = string
    min_length = 1
    max_length = 15
  }

  output "number" { type = integer }

  run = <<TS
    import { numerals, toRoman } from "./numerals.ts";

    const text: string = input.roman.toUpperCase();
    let number = 0;
    for (let at = 0; at < text.length; ) {
      const found = numerals.find(([sign]) => text.startsWith(sign, at));
      if (!found) throw new ToolError(`"${input.roman}" is not a Roman numeral`);
      const [sign, value] = found;
      number += value;
      at += sign.length;
    }
    // Every number has one form: IIII and VX are invalid.
    if (toRoman(number) !== text) throw new ToolError(`"${input.roman}" is not a Roman numeral`);
    return { number };
  TS
}

test "a year" {
  tool  = "to_roman"
  input = { number = 1994 }
  expect {
    output = { roman = "MCMXCIV" }
  }
}

test "Romans had no zero" {
  tool  = "to_roman"
  input = { number = 0 }
  expect { error = "INVALID_INPUT" }
}

test "read a numeral" {
  tool  = "from_roman"
  input = { roman = "mcmxciv" }
  expect {
    output = { number = 1994 }
  }
}

test "IIII is not a numeral" {
  tool  = "from_roman"
  input = { roman = "IIII" }
  expect {
    error           = "EXECUTION_ERROR"
    message_matches = "^\"IIII\" is not a Roman numeral$"
  }
}
