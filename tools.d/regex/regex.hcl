# A script may import a file of its folder. This tool takes untrusted patterns:
# the RegExp of JavaScript can run for ever on a pattern such as (a+)+$, where no
# timeout can stop it. So this tool has a matcher with a run time that is limited
# by the text and the pattern, and counts its steps.

tool "extract_matches" {
  title       = "Extract what a pattern matches"
  description = <<-TEXT
    Finds all matches of a regular expression in a text. Returns {matches,
    count, more}; a match has text, index (in characters) and groups, by number
    and by name. Knows sets, \d \w \s \b, groups, (?<name>…), | and the
    repetitions * + ? {m,n}, greedy and lazy. Lookaround and backreferences do
    not exist here: they could take for ever.
  TEXT
  timeout     = "60s" # for a machine under load; the steps below are the bound that counts
  read_only   = true
  open_world  = false

  input "text" {
    type        = string
    description = "The text to search"
    max_length  = 20000
  }
  input "pattern" {
    type        = string
    description = "For example (?<year>\\d{4})-(?<month>\\d\\d)"
    min_length  = 1
    max_length  = 500
  }
  input "ignore_case" {
    type    = bool
    default = false
  }
  input "multiline" {
    type        = bool
    description = "Whether ^ and $ match at every line"
    default     = false
  }
  input "limit" {
    type        = integer
    description = "How many matches to return"
    default     = 100
    min         = 1
    max         = 1000
  }

  output "matches" {
    type = list(object({
      text   = string
      index  = integer
      groups = list(any)
      named  = map(any)
    }))
  }
  output "count" { type = integer }
  output "more" {
    type        = bool
    description = "Whether there are matches beyond the limit"
  }

  run = <<JS
    import { compile, find } from "./pattern.js";

    let steps = 100_000;
    const spend = (n) => {
      steps -= n;
      if (steps < 0) throw new ToolError("the pattern needs too many steps on this text; make it more specific, or the text shorter");
    };

    const program = compile(input.pattern, { ignoreCase: input.ignore_case, multiline: input.multiline });
    const chars = [...input.text];
    const textOf = (saved, group) =>
      saved[2 * group + 1] === undefined ? null : chars.slice(saved[2 * group], saved[2 * group + 1]).join("");

    const matches = [];
    let more = false;
    for (let from = 0; from <= chars.length; ) {
      const saved = find(program, chars, from, spend);
      if (!saved) break;
      if (matches.length === input.limit) {
        more = true;
        break;
      }
      const groups = Array.from({ length: program.groups }, (_, i) => textOf(saved, i + 1));
      const named = Object.fromEntries(program.names.flatMap((name, slot) => (name ? [[name, groups[slot - 1]]] : [])));
      matches.push({ text: textOf(saved, 0), index: saved[0], groups, named });
      from = saved[1] > saved[0] ? saved[1] : saved[1] + 1; // an empty match moves on by one
    }
    return { matches, count: matches.length, more };
  JS
}

test "groups are returned by number and by name" {
  tool  = "extract_matches"
  input = { text = "from 2024-01 to 2025-12", pattern = "(?<year>\\d{4})-(\\d\\d)" }
  expect {
    output = {
      matches = [
        { text = "2024-01", index = 5, groups = ["2024", "01"], named = { year = "2024" } },
        { text = "2025-12", index = 16, groups = ["2025", "12"], named = { year = "2025" } },
      ]
      count = 2
      more  = false
    }
  }
}

test "greedy and lazy, sets and choices" {
  tool  = "extract_matches"
  input = { text = "<b>Ok</b> <i>no</i>", pattern = "<([bi])>([^<]*?)</(?:b|i)>" }
  expect {
    output = {
      matches = [
        { text = "<b>Ok</b>", index = 0, groups = ["b", "Ok"], named = {} },
        { text = "<i>no</i>", index = 10, groups = ["i", "no"], named = {} },
      ]
      count = 2
      more  = false
    }
  }
}

test "a group that took no part is null" {
  tool  = "extract_matches"
  input = { text = "B", pattern = "(a)|(b)", ignore_case = true }
  expect {
    output = { matches = [{ text = "B", index = 0, groups = [null, "B"], named = {} }], count = 1, more = false }
  }
}

test "empty matches end" {
  tool  = "extract_matches"
  input = { text = "ab\nc", pattern = "^|$", multiline = true, limit = 3 }
  expect {
    output = {
      matches = [
        { text = "", index = 0, groups = [], named = {} },
        { text = "", index = 2, groups = [], named = {} },
        { text = "", index = 3, groups = [], named = {} },
      ]
      count = 3
      more  = true
    }
  }
}

test "the pattern that ruins others is harmless" {
  tool  = "extract_matches"
  input = { text = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!", pattern = "^(a+)+$" }
  expect {
    output = { matches = [], count = 0, more = false }
  }
}

test "work is bounded" {
  tool  = "extract_matches"
  input = { text = local.ten_thousand, pattern = "(?:a?){500}b" }
  expect {
    error           = "EXECUTION_ERROR"
    message_matches = "too many steps"
  }
}

test "lookahead is refused with a reason" {
  tool  = "extract_matches"
  input = { text = "x", pattern = "x(?=y)" }
  expect {
    error           = "EXECUTION_ERROR"
    message_matches = "no lookahead .* at character 4 of the pattern$"
  }
}

test "brackets must be closed" {
  tool  = "extract_matches"
  input = { text = "x", pattern = "[a-" }
  expect {
    error           = "EXECUTION_ERROR"
    message_matches = "^a \\[ is never closed"
  }
}

locals {
  ten          = split("", "aaaaaaaaaa")
  thousand     = join("", [for i in local.ten : join("", [for j in local.ten : "aaaaaaaaaa"])])
  ten_thousand = join("", [for i in local.ten : local.thousand])
}
