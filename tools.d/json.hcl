# Arguments of any type: `any` is any JSON, map(T) an object with any keys,
# list(T) a list. Use `any` only where no other type fits.

tool "query_json" {
  title       = "Query a JSON value"
  description = <<-TEXT
    Returns what stands at a path of a JSON value, as {matches, count}. A path
    is made of names and indexes: user.emails[0], items[-1].id, items[*].name;
    names with other characters stand in quotes: rows[*]["unit price"]. The
    empty path is the value itself. What is not there gives no match.
  TEXT
  read_only   = true
  open_world  = false

  input "data" {
    type        = any
    description = "The JSON value itself, not text that holds it"
  }
  input "path" {
    type        = string
    description = "For example items[*].name"
    default     = ""
    max_length  = 1000
  }

  output "matches" { type = list(any) }
  output "count" { type = integer }

  run = <<JS
    // The whole path is parsed first, so that an error in the path is reported
    // for every value.
    const step = /\.?([A-Za-z_$][\w$-]*)|\[(?:(-?\d{1,9})|(\*)|"((?:[^"\\]|\\.)*)")\]/y;
    const steps = [];
    while (step.lastIndex < input.path.length) {
      const from = step.lastIndex;
      const found = step.exec(input.path);
      if (!found) throw new ToolError(`the path cannot be read from character ${from + 1} on`);
      const [, name, index, all, quoted] = found;
      steps.push(all ? "*" : index ? Number(index) : { name: name ?? quoted.replace(/\\(.)/g, "$1") });
    }

    let values = [input.data];
    for (const step of steps) {
      values = values.flatMap((value) => {
        if (step === "*") return Array.isArray(value) ? value : value && typeof value === "object" ? Object.values(value) : [];
        if (typeof step === "number") return Array.isArray(value) && value.at(step) !== undefined ? [value.at(step)] : [];
        return value && typeof value === "object" && !Array.isArray(value) && Object.hasOwn(value, step.name) ? [value[step.name]] : [];
      });
    }
    return { matches: values, count: values.length };
  JS
}

tool "reshape_records" {
  title       = "Pick, rename, sort and cut records"
  description = <<-TEXT
    Transforms a list of JSON objects: keeps some fields, renames them, sorts
    by one and cuts the list. Returns {records, count}. Everything but records
    is optional; the steps run in this order: sort, cut, pick, rename.
  TEXT
  read_only   = true
  open_world  = false

  input "records" {
    type        = list(map(any))
    description = "The objects"
    max_items   = 10000
  }
  input "sort" {
    type        = object({ field = string, descending = optional(bool, false) })
    description = "Field to sort by; numbers before texts, what lacks the field last"
    required    = false
  }
  input "limit" {
    type        = integer
    description = "How many records to keep"
    required    = false
    min         = 0
  }
  input "pick" {
    type        = list(string)
    description = "Fields to keep, in this order"
    required    = false
    min_items   = 1
    max_items   = 200
    unique      = true
  }
  input "rename" {
    type        = map(string)
    description = "New names of fields by their old ones"
    default     = {}
  }

  output "records" { type = list(map(any)) }
  output "count" { type = integer }

  run = <<JS
    const rank = (value) => (typeof value === "number" ? 0 : typeof value === "string" ? 1 : 2);
    const compare = (a, b) => rank(a) - rank(b) || (rank(a) === 2 || a === b ? 0 : a < b ? -1 : 1);

    let records = input.records;
    if (input.sort) {
      const { field, descending } = input.sort;
      const has = records.filter((record) => Object.hasOwn(record, field));
      has.sort((a, b) => (descending ? compare(b[field], a[field]) : compare(a[field], b[field])));
      records = [...has, ...records.filter((record) => !Object.hasOwn(record, field))];
    }
    if (input.limit !== undefined) records = records.slice(0, input.limit);

    const rename = new Map(Object.entries(input.rename));
    records = records.map((record) => {
      const fields = (input.pick ?? Object.keys(record)).filter((field) => Object.hasOwn(record, field));
      const renamed = fields.map((field) => [rename.get(field) ?? field, record[field]]);
      const shaped = Object.fromEntries(renamed);
      if (Object.keys(shaped).length < renamed.length) throw new ToolError("two fields of a record would have the same name");
      return shaped;
    });
    return { records, count: records.length };
  JS
}

test "every item is searched" {
  tool  = "query_json"
  input = { data = { items = [{ name = "a", tags = ["x"] }, { name = "b" }, 3] }, path = "items[*].name" }
  expect {
    output = { matches = ["a", "b"], count = 2 }
  }
}

test "indexes count from both ends and names may be quoted" {
  tool  = "query_json"
  input = { data = [[1, 2], { "unit price" = 9.5 }], path = "[-1][\"unit price\"]" }
  expect {
    output = { matches = [9.5], count = 1 }
  }
}

test "what is not there gives no match" {
  tool  = "query_json"
  input = { data = { a = null }, path = "a.b.constructor" }
  expect {
    output = { matches = [], count = 0 }
  }
}

test "the empty path is the value itself" {
  tool  = "query_json"
  input = { data = null }
  expect {
    output = { matches = [null], count = 1 }
  }
}

test "a path is read to its end" {
  tool  = "query_json"
  input = { data = {}, path = "items[x]" }
  expect {
    error           = "EXECUTION_ERROR"
    message_matches = "^the path cannot be read from character 6 on$"
  }
}

test "records are sorted, cut, picked and renamed" {
  tool = "reshape_records"
  input = {
    records = [{ id = 1, score = 5, note = "x" }, { id = 2 }, { id = 3, score = 9, note = "y" }]
    sort    = { field = "score", descending = true }
    limit   = 2
    pick    = ["score", "id"]
    rename  = { id = "key" }
  }
  expect {
    output = { records = [{ score = 9, key = 3 }, { score = 5, key = 1 }], count = 2 }
  }
}

test "without options records stay as they are" {
  tool  = "reshape_records"
  input = { records = [{ b = [1], a = null }] }
  expect {
    output = { records = [{ b = [1], a = null }], count = 1 }
  }
}

test "two fields cannot get one name" {
  tool  = "reshape_records"
  input = { records = [{ a = 1, b = 2 }], rename = { a = "b" } }
  expect {
    error           = "EXECUTION_ERROR"
    message_matches = "the same name"
  }
}

test "records are objects" {
  tool  = "reshape_records"
  input = { records = [1] }
  expect {
    error           = "INVALID_INPUT"
    message_matches = "/records/0 "
  }
}
