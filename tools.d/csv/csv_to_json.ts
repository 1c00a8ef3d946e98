// The script of the tool csv_to_json: see csv.hcl.

interface Input {
  csv: string;
  delimiter: string;
  header: boolean;
  infer_types: boolean;
}

interface Row {
  line: number;
  fields: string[];
}

type Scalar = string | number | boolean | null;

// parse splits CSV into records (RFC 4180). It skips blank lines.
function parse(csv: string, delimiter: string): Row[] {
  const rows: Row[] = [];
  let fields: string[] = [];
  let line = 1;
  let first = 1; // the line on which the record began
  let at = 0;

  const endRecord = (): void => {
    if (fields.length > 1 || fields[0] !== "") rows.push({ line: first, fields });
    fields = [];
    first = line;
  };

  // quoted reads a quoted field, and sets at to the position after it.
  const quoted = (): string => {
    const opened = line;
    const parts: string[] = [];
    for (at++; ; ) {
      const end = csv.indexOf('"', at);
      if (end < 0) throw new ToolError(`the quote opened in line ${opened} is never closed`);
      const part = csv.slice(at, end);
      parts.push(part);
      line += part.split("\n").length - 1;
      at = end + 1;
      if (csv[at] !== '"') return parts.join("");
      parts.push('"');
      at++;
    }
  };

  const plain = (): string => {
    const start = at;
    while (at < csv.length && csv[at] !== delimiter && csv[at] !== "\n") at++;
    const end = csv[at] !== delimiter && csv[at - 1] === "\r" && at > start ? at - 1 : at;
    return csv.slice(start, end);
  };

  while (at < csv.length) {
    fields.push(csv[at] === '"' ? quoted() : plain());
    if (csv[at] === "\r" && csv[at + 1] === "\n") at++;
    if (at < csv.length && csv[at] !== delimiter && csv[at] !== "\n") {
      throw new ToolError(`line ${line} has text behind a closing quote`);
    }
    if (csv[at] === delimiter) {
      if (at === csv.length - 1) fields.push("");
    } else {
      line++;
      endRecord();
    }
    at++;
  }
  if (fields.length > 0) endRecord();
  return rows;
}

// infer keeps text that would change if converted back, such as 007.
function infer(text: string): Scalar {
  if (text === "") return null;
  if (text === "true" || text === "false") return text === "true";
  if (!/^-?(?:0|[1-9]\d{0,14})(?:\.\d{1,15})?(?:[eE][+-]?\d{1,2})?$/.test(text)) return text;
  return Number(text);
}

export default function ({ csv, delimiter, header, infer_types: inferTypes }: Input) {
  const rows = parse(csv.startsWith("\ufeff") ? csv.slice(1) : csv, delimiter);
  if (rows.length === 0) throw new ToolError("the text holds no records");

  const columns = header ? rows.shift()!.fields : rows[0].fields.map((_, i) => `column_${i + 1}`);
  if (new Set(columns).size < columns.length) throw new ToolError("two columns have the same name");

  const value = inferTypes ? infer : (text: string): Scalar => text;
  return {
    columns,
    rows: rows.map(({ line, fields }) => {
      if (fields.length !== columns.length) {
        const count = fields.length === 1 ? "1 field" : `${fields.length} fields`;
        throw new ToolError(`line ${line} has ${count}, the first record has ${columns.length}`);
      }
      return Object.fromEntries(columns.map((column, i) => [column, value(fields[i])]));
    }),
    count: rows.length,
  };
}
