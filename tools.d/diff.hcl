# The run time grows with the square of the input, so the input is limited: here
# to 1,000 lines on each side. The tool also has a shorter timeout.

tool "diff_text" {
  title       = "Compare two texts"
  description = <<-TEXT
    Compares two texts line by line. Returns {same, added, removed, diff}: the
    numbers of added and removed lines, and a unified diff that can be read by
    people and applied by patch. Each text may have 1,000 lines.
  TEXT
  timeout     = "5s"
  read_only   = true
  open_world  = false

  input "before" {
    type        = string
    description = "The old text"
    max_length  = 200000
  }
  input "after" {
    type        = string
    description = "The new text"
    max_length  = 200000
  }
  input "context" {
    type        = integer
    description = "How many unchanged lines to show around a change"
    default     = 3
    min         = 0
    max         = 20
  }

  output "same" { type = bool }
  output "added" { type = integer }
  output "removed" { type = integer }
  output "diff" { type = string }

  run = <<JS
    const MAX_LINES = 1000;
    const linesOf = (text) => {
      const lines = text.split("\n");
      if (lines.at(-1) === "") lines.pop();
      if (lines.length > MAX_LINES) throw new ToolError(`a text has more than ${MAX_LINES} lines`);
      return lines;
    };
    const a = linesOf(input.before), b = linesOf(input.after);

    // common[i][j] is the length of the longest common subsequence after line i
    // of a and line j of b, in one flat array.
    const width = b.length + 1;
    const common = new Uint16Array((a.length + 1) * width);
    for (let i = a.length - 1; i >= 0; i--) {
      for (let j = b.length - 1; j >= 0; j--) {
        const at = i * width + j;
        common[at] = a[i] === b[j] ? common[at + width + 1] + 1 : Math.max(common[at + width], common[at + 1]);
      }
    }

    const edits = []; // every line once: its sign, its text, its place on both sides
    for (let i = 0, j = 0; i < a.length || j < b.length; ) {
      if (i < a.length && j < b.length && a[i] === b[j]) {
        edits.push({ sign: " ", line: a[i], i: i++, j: j++ });
      } else if (j === b.length || (i < a.length && common[(i + 1) * width + j] >= common[i * width + j + 1])) {
        edits.push({ sign: "-", line: a[i], i: i++, j });
      } else {
        edits.push({ sign: "+", line: b[j], i, j: j++ });
      }
    }

    const changed = edits.flatMap((edit, at) => (edit.sign === " " ? [] : [at]));
    const out = [];
    for (let k = 0; k < changed.length; ) {
      let last = k; // changes whose contexts touch share a hunk
      while (last + 1 < changed.length && changed[last + 1] - changed[last] <= 2 * input.context + 1) last++;
      const hunk = edits.slice(Math.max(0, changed[k] - input.context), changed[last] + input.context + 1);
      const inA = hunk.filter((edit) => edit.sign !== "+").length, inB = hunk.filter((edit) => edit.sign !== "-").length;
      out.push(`@@ -${hunk[0].i + (inA ? 1 : 0)},${inA} +${hunk[0].j + (inB ? 1 : 0)},${inB} @@`);
      out.push(...hunk.map((edit) => edit.sign + edit.line));
      k = last + 1;
    }
    return {
      same: changed.length === 0,
      added: edits.filter((edit) => edit.sign === "+").length,
      removed: edits.filter((edit) => edit.sign === "-").length,
      diff: out.join("\n"),
    };
  JS
}

test "a changed line is removed and added" {
  tool  = "diff_text"
  input = { before = "one\ntwo\nthree\n", after = "one\n2\nthree\n", context = 1 }
  expect {
    output = { same = false, added = 1, removed = 1, diff = "@@ -1,3 +1,3 @@\n one\n-two\n+2\n three" }
  }
}

test "distant changes are told apart" {
  tool  = "diff_text"
  input = { before = "a\nb\nc\nd\ne", after = "A\nb\nc\nd\nE", context = 0 }
  expect {
    output = { same = false, added = 2, removed = 2, diff = "@@ -1,1 +1,1 @@\n-a\n+A\n@@ -5,1 +5,1 @@\n-e\n+E" }
  }
}

test "from nothing everything is added" {
  tool  = "diff_text"
  input = { before = "", after = "new" }
  expect {
    output = { same = false, added = 1, removed = 0, diff = "@@ -0,0 +1,1 @@\n+new" }
  }
}

test "equal texts have no diff" {
  tool  = "diff_text"
  input = { before = "same\n", after = "same\n" }
  expect {
    output = { same = true, added = 0, removed = 0, diff = "" }
  }
}

locals {
  hundred_lines = join("", [for i in split("", "0123456789") : "0\n1\n2\n3\n4\n5\n6\n7\n8\n9\n"])
}

test "too many lines are refused" {
  tool  = "diff_text"
  input = { before = "${join("", [for i in split("", "0123456789") : local.hundred_lines])}one more", after = "" }
  expect {
    error           = "EXECUTION_ERROR"
    message_matches = "^a text has more than 1000 lines$"
  }
}
