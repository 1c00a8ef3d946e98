# A small template language: it has values and sections, and no code, so that an
# untrusted template can show its data and nothing else.

tool "render_template" {
  title       = "Fill in a template"
  description = <<-TEXT
    Fills a Mustache-like template in with data. Returns {text}.
    {{a.b}} is a value; {{#list}}…{{/list}} repeats for every item, or shows
    once for a value that is there; {{^list}}…{{/list}} shows when it is empty
    or missing; {{.}} is the item itself. Nothing is escaped: the text is plain.
  TEXT
  timeout     = "2s"
  read_only   = true
  open_world  = false

  input "template" {
    type        = string
    description = "For example: Dear {{name}}, you ordered:{{#items}} {{title}}{{/items}}"
    max_length  = 20000
  }
  input "data" {
    type        = map(any)
    description = "The values by name"
    default     = {}
  }
  input "missing" {
    type        = string
    description = "What becomes of a value that the data lacks"
    enum        = ["error", "empty", "keep"]
    default     = "error"
  }

  output "text" { type = string }

  run = <<JS
    const MAX_TEXT = 200_000, MAX_DEPTH = 20;
    const parts = input.template.split(/\{\{([#^\/]?[^{}]*)\}\}/); // text and tags by turns

    // parse reads up to the end of a section into a list of texts and tags.
    let at = 0;
    function parse(section, depth) {
      if (depth > MAX_DEPTH) throw new ToolError(`sections nest deeper than ${MAX_DEPTH}`);
      const nodes = [];
      for (; at < parts.length; at++) {
        if (at % 2 === 0) {
          nodes.push(parts[at]);
          continue;
        }
        const kind = "#^/".includes(parts[at].charAt(0)) ? parts[at].charAt(0) : "";
        const name = parts[at].slice(kind.length).trim();
        if (kind === "/") {
          if (name !== section) throw new ToolError(`{{/${name}}} closes no section`);
          return nodes;
        }
        const node = { kind, name, tag: `{{${parts[at]}}}` };
        if (kind) {
          at++;
          node.inner = parse(name, depth + 1);
        }
        nodes.push(node);
      }
      if (section !== undefined) throw new ToolError(`the section {{#${section}}} is never closed`);
      return nodes;
    }

    // find looks up a name in the innermost scope with its first part.
    function find(name, scopes) {
      if (name === ".") return scopes.at(-1);
      const [first, ...rest] = name.split(".");
      const own = (value, key) => value !== null && typeof value === "object" && Object.hasOwn(value, key);
      const scope = scopes.findLast((scope) => own(scope, first));
      return rest.reduce((value, key) => (own(value, key) ? value[key] : undefined), scope?.[first]);
    }

    const out = [];
    let length = 0;
    function emit(text) {
      length += text.length;
      if (length > MAX_TEXT) throw new ToolError(`the text is longer than ${MAX_TEXT} characters`);
      out.push(text);
    }

    function render(nodes, scopes) {
      for (const node of nodes) {
        if (typeof node === "string") {
          emit(node);
          continue;
        }
        const value = find(node.name, scopes);
        const empty = value === undefined || value === null || value === false || value === "" || value?.length === 0;
        if (node.kind === "^") {
          if (empty) render(node.inner, scopes);
        } else if (node.kind === "#") {
          if (!empty) for (const item of Array.isArray(value) ? value : [value]) render(node.inner, [...scopes, item]);
        } else if (value !== undefined) {
          emit(typeof value === "string" ? value : JSON.stringify(value));
        } else if (input.missing === "error") {
          throw new ToolError(`the data has no ${node.name}`);
        } else if (input.missing === "keep") {
          emit(node.tag);
        }
      }
    }

    render(parse(undefined, 0), [input.data]);
    return { text: out.join("") };
  JS
}

test "values and sections are filled in" {
  tool = "render_template"
  input = {
    template = "Dear {{customer.name}},{{#items}}\n- {{title}} ({{count}}) for {{customer.name}}{{/items}}{{^notes}}\nNo notes.{{/notes}}"
    data = {
      customer = { name = "Ada" }
      items    = [{ title = "Lamp", count = 2 }, { title = "Bulb", count = 8 }]
      notes    = []
    }
  }
  expect {
    output = { text = "Dear Ada,\n- Lamp (2) for Ada\n- Bulb (8) for Ada\nNo notes." }
  }
}

test "items may be plain values" {
  tool  = "render_template"
  input = { template = "{{#tags}}[{{.}}]{{/tags}}", data = { tags = ["a", 1, true] } }
  expect {
    output = { text = "[a][1][true]" }
  }
}

test "what is missing may be kept" {
  tool  = "render_template"
  input = { template = "{{ a }} {{b.constructor}}", data = { a = "A", b = {} }, missing = "keep" }
  expect {
    output = { text = "A {{b.constructor}}" }
  }
}

test "what is missing is an error unless asked otherwise" {
  tool  = "render_template"
  input = { template = "Dear {{name}}" }
  expect {
    error           = "EXECUTION_ERROR"
    message_matches = "^the data has no name$"
  }
}

test "sections must be closed" {
  tool  = "render_template"
  input = { template = "{{#items}}x", data = { items = [1] } }
  expect {
    error           = "EXECUTION_ERROR"
    message_matches = "never closed"
  }
}
