// Regular expressions with linear run time. A pattern compiles to a program, and
// one pass over the text keeps all positions in the program that a match could
// have (Thompson's construction, with captures after Pike). Every character costs
// at most one step for each instruction, for every pattern.

const MAX_INSTRUCTIONS = 2000;
const MAX_NESTING = 30;
const MAX_REPEAT = 1000;

const between = (low, high) => (c) => c >= low && c <= high;
const isDigit = between("0", "9");
const isWord = (c) => isDigit(c) || between("a", "z")(c) || between("A", "Z")(c) || c === "_";
const isSpace = (c) => c.trim() === "";
const isLineEnd = (c) => c === "\n" || c === "\r" || c === "\u2028" || c === "\u2029";
const not = (test) => (c) => !test(c);

const classes = { __proto__: null, d: isDigit, D: not(isDigit), w: isWord, W: not(isWord), s: isSpace, S: not(isSpace) };
const controls = { __proto__: null, n: "\n", r: "\r", t: "\t", f: "\f", v: "\v", 0: "\0" };

/** A pattern as a tree. Recursion is bounded by MAX_NESTING. */
class Parser {
  constructor(pattern, { ignoreCase, multiline }) {
    this.chars = [...pattern];
    this.at = 0;
    this.names = [];
    this.groups = 0;
    this.ignoreCase = ignoreCase;
    this.multiline = multiline;
  }

  fail(what) {
    throw new ToolError(`${what}, at character ${this.at + 1} of the pattern`);
  }

  take(sign) {
    if (this.chars[this.at] !== sign) return false;
    this.at++;
    return true;
  }

  parse() {
    const tree = this.choice(0);
    if (this.at < this.chars.length) this.fail("this ) closes nothing");
    return tree;
  }

  choice(depth) {
    if (depth > MAX_NESTING) this.fail(`groups nest deeper than ${MAX_NESTING}`);
    const options = [this.sequence(depth)];
    while (this.take("|")) options.push(this.sequence(depth));
    return { kind: "choice", options };
  }

  sequence(depth) {
    const items = [];
    while (this.at < this.chars.length && this.chars[this.at] !== "|" && this.chars[this.at] !== ")") {
      items.push(this.repeated(this.atom(depth)));
    }
    return { kind: "sequence", items };
  }

  repeated(node) {
    const range = this.range();
    if (!range) return node;
    const [min, max] = range;
    if (max < min) this.fail("the numbers of a repetition are out of order");
    if (min > MAX_REPEAT || (max > MAX_REPEAT && max !== Infinity)) this.fail(`a repetition is greater than ${MAX_REPEAT}`);
    if (node.kind === "assert") this.fail("what matches no text cannot be repeated");
    return { kind: "repeat", node, min, max, lazy: this.take("?") };
  }

  range() {
    if (this.take("*")) return [0, Infinity];
    if (this.take("+")) return [1, Infinity];
    if (this.take("?")) return [0, 1];
    const braces = this.chars[this.at] === "{" && /^\{(\d{1,5})(?:(,)(\d{0,5}))?\}/.exec(this.chars.slice(this.at, this.at + 13).join(""));
    if (!braces) return null;
    this.at += braces[0].length;
    const min = Number(braces[1]);
    return [min, braces[2] === undefined ? min : braces[3] === "" ? Infinity : Number(braces[3])];
  }

  atom(depth) {
    const c = this.chars[this.at++];
    switch (c) {
      case "(": return this.group(depth);
      case "[": return this.one(this.set());
      case ".": return this.one(not(isLineEnd));
      case "^": return { kind: "assert", test: (before) => before === undefined || (this.multiline && isLineEnd(before)) };
      case "$": return { kind: "assert", test: (_, after) => after === undefined || (this.multiline && isLineEnd(after)) };
      case "\\": return this.escape();
      case "*": case "+": case "?":
        this.at--;
        return this.fail(`there is nothing before this ${c} to repeat`);
      default: return this.literal(c);
    }
  }

  group(depth) {
    let slot;
    if (this.take("?")) {
      if (this.take("<") && this.chars[this.at] !== "=" && this.chars[this.at] !== "!") {
        slot = ++this.groups;
        this.names[slot] = this.name();
      } else if (!this.take(":")) {
        this.fail("there is no lookahead or lookbehind here: both could take for ever");
      }
    } else {
      slot = ++this.groups;
    }
    const node = this.choice(depth + 1);
    if (!this.take(")")) this.fail("a ( is never closed");
    return slot === undefined ? node : { kind: "group", slot, node };
  }

  name() {
    const end = this.chars.indexOf(">", this.at);
    const name = this.chars.slice(this.at, Math.max(end, this.at)).join("");
    if (!/^[A-Za-z_]\w{0,31}$/.test(name)) this.fail("a group needs a name of letters, digits and _, as in (?<year>…)");
    if (this.names.includes(name)) this.fail(`two groups are called ${name}`);
    this.at = end + 1;
    return name;
  }

  escape() {
    const c = this.chars[this.at++];
    if (c === undefined) this.fail("the pattern ends with a backslash");
    if (c === "b" || c === "B") {
      const word = (x) => x !== undefined && isWord(x);
      return { kind: "assert", test: (before, after) => (word(before) !== word(after)) === (c === "b") };
    }
    if (c in classes) return this.one(classes[c]);
    return this.literal(this.escaped(c));
  }

  /** The character that stands for itself behind a backslash, here or in a set. */
  escaped(c) {
    if (c in controls) return controls[c];
    const digits = c === "x" ? 2 : c === "u" ? 4 : 0;
    if (digits > 0) {
      const hex = this.chars.slice(this.at, this.at + digits).join("");
      if (!/^[0-9A-Fa-f]+$/.test(hex) || hex.length < digits) this.fail(`\\${c} needs ${digits} hexadecimal digits`);
      this.at += digits;
      return String.fromCharCode(parseInt(hex, 16));
    }
    if (isDigit(c) || c === "k") this.fail("there are no backreferences here: they could take for ever");
    if (isWord(c)) this.fail(`\\${c} is not known`);
    return c;
  }

  set() {
    const negated = this.take("^");
    const tests = [];
    while (!this.take("]")) {
      const low = this.member();
      if (typeof low === "function") {
        tests.push(low);
      } else if (this.chars[this.at] === "-" && this.chars[this.at + 1] !== "]") {
        this.at++;
        const high = this.member();
        if (typeof high === "function" || high < low) this.fail("a range of a set is out of order");
        tests.push(between(low, high));
      } else {
        tests.push((c) => c === low);
      }
    }
    const any = (c) => tests.some((test) => test(c));
    const test = this.ignoreCase ? (c) => any(c.toLowerCase()) || any(c.toUpperCase()) : any;
    return negated ? not(test) : test;
  }

  member() {
    const c = this.chars[this.at++];
    if (c === undefined) this.fail("a [ is never closed");
    if (c !== "\\") return c;
    const escape = this.chars[this.at++];
    if (escape === undefined) this.fail("the pattern ends with a backslash");
    if (escape === "b") return "\b";
    return classes[escape] ?? this.escaped(escape);
  }

  literal(wanted) {
    if (!this.ignoreCase) return this.one((c) => c === wanted);
    const folded = wanted.toLowerCase();
    return this.one((c) => c.toLowerCase() === folded);
  }

  one(test) {
    return { kind: "one", test };
  }
}

/** The instructions of a tree, in one flat list. */
class Program {
  constructor() {
    this.code = [];
  }

  add(instruction) {
    if (this.code.length >= MAX_INSTRUCTIONS) throw new ToolError("the pattern is too long once its repetitions are written out");
    return this.code.push(instruction) - 1;
  }

  emit(node) {
    switch (node.kind) {
      case "one": case "assert":
        this.add({ op: node.kind, test: node.test });
        break;
      case "sequence":
        node.items.forEach((item) => this.emit(item));
        break;
      case "group":
        this.add({ op: "save", slot: 2 * node.slot });
        this.emit(node.node);
        this.add({ op: "save", slot: 2 * node.slot + 1 });
        break;
      case "choice": {
        const ends = node.options.slice(0, -1).map((option) => {
          const split = this.split(true);
          this.emit(option);
          const jump = this.add({ op: "jump" });
          this.code[split].otherwise = this.code.length;
          return jump;
        });
        this.emit(node.options.at(-1));
        for (const end of ends) this.code[end].first = this.code.length;
        break;
      }
      case "repeat":
        this.repeat(node);
    }
  }

  repeat({ node, min, max, lazy }) {
    for (let i = 0; i < min; i++) this.emit(node);
    if (max === Infinity) {
      const split = this.split(!lazy);
      this.emit(node);
      this.add({ op: "jump", first: split });
      this.leave(split, lazy);
      return;
    }
    const splits = [];
    for (let i = min; i < max; i++) {
      splits.push(this.split(!lazy));
      this.emit(node);
    }
    for (const split of splits) this.leave(split, lazy);
  }

  /** A fork whose way into what follows is tried first, or last. */
  split(into) {
    const at = this.add({ op: "split" });
    this.code[at][into ? "first" : "otherwise"] = at + 1;
    return at;
  }

  leave(split, lazy) {
    this.code[split][lazy ? "first" : "otherwise"] = this.code.length;
  }
}

/** Compiles a pattern; throws a ToolError that tells what is wrong with it. */
export function compile(pattern, options) {
  const parser = new Parser(pattern, options);
  const tree = parser.parse();
  const program = new Program();
  program.emit({ kind: "group", slot: 0, node: tree });
  program.add({ op: "match" });
  return { code: program.code, starts: startsOf(program.code), groups: parser.groups, names: parser.names };
}

/** Tests of which one holds for the first character of every match; null when a match may be empty. */
function startsOf(code) {
  const tests = [], seen = new Set(), open = [0];
  for (let pc = open.pop(); pc !== undefined; pc = open.pop()) {
    if (seen.has(pc)) continue;
    seen.add(pc);
    const { op, first, otherwise, test } = code[pc];
    switch (op) {
      case "match": return null;
      case "one": tests.push(test); break;
      case "jump": open.push(first); break;
      case "split": open.push(first, otherwise); break;
      default: open.push(pc + 1);
    }
  }
  return tests;
}

/**
 * Finds the first match in a list of characters from a place on: the places
 * where each group begins and ends, group 0 being the match. spend is told how
 * many steps are taken, and may throw. The loops count instead of iterating,
 * and make no objects: they run for every character.
 */
export function find({ code, starts }, chars, from, spend) {
  const seen = new Int32Array(code.length).fill(-1); // the last place at which an instruction was reached
  const ways = [], savedOnWay = [];
  let steps = 0;

  // reach follows all instructions that match no character, from start on, and
  // adds the ends to a list of threads. The first end has priority.
  function reach(threads, start, saved, place) {
    let open = 0;
    for (let pc = start; ; ) {
      steps++;
      let next = -1;
      if (seen[pc] !== place) {
        seen[pc] = place;
        const step = code[pc];
        switch (step.op) {
          case "jump":
            next = step.first;
            break;
          case "split":
            ways[open] = step.otherwise;
            savedOnWay[open++] = saved;
            next = step.first;
            break;
          case "save":
            saved = saved.slice();
            saved[step.slot] = place;
            next = pc + 1;
            break;
          case "assert":
            if (step.test(chars[place - 1], chars[place])) next = pc + 1;
            break;
          default:
            threads.at.push(pc);
            threads.saved.push(saved);
        }
      }
      if (next < 0) {
        if (open === 0) return;
        next = ways[--open];
        saved = savedOnWay[open];
      }
      pc = next;
    }
  }

  // mayStart lets the search skip most positions.
  function mayStart(place) {
    if (starts === null) return true;
    if (place === chars.length) return false;
    for (let i = 0; i < starts.length; i++) {
      steps++;
      if (starts[i](chars[place])) return true;
    }
    return false;
  }

  let found = null;
  let threads = { at: [], saved: [] };
  for (let place = from; place <= chars.length; place++) {
    if (!found && mayStart(place)) reach(threads, 0, [], place);
    spend(steps);
    steps = 0;
    const next = { at: [], saved: [] };
    for (let i = 0; i < threads.at.length; i++) {
      const pc = threads.at[i];
      if (code[pc].op === "match") {
        found = threads.saved[i]; // whatever follows in the list is worth less
        break;
      }
      steps++;
      if (place < chars.length && code[pc].test(chars[place])) reach(next, pc + 1, threads.saved[i], place + 1);
    }
    if (found && next.at.length === 0) break;
    threads = next;
  }
  return found;
}
