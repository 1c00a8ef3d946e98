# A script in a separate file, in TypeScript. mcpd strips types and does not
# check them; an editor does. A change of the .ts file reloads the tool like a
# change of this file.

tool "csv_to_json" {
  title       = "Read CSV"
  description = <<-TEXT
    Parses CSV (RFC 4180: quoted fields may hold delimiters, quotes and line
    ends). Returns {columns, rows, count}: one object per record, its keys the
    columns. Without a header line the columns are column_1, column_2 and so on.
  TEXT
  timeout     = "3s"
  read_only   = true
  open_world  = false

  input "csv" {
    type        = string
    description = "The CSV text, at most 500,000 characters"
    min_length  = 1
    max_length  = 500000
  }
  input "delimiter" {
    type        = string
    description = "What stands between fields"
    enum        = [",", ";", "\t", "|"]
    default     = ","
  }
  input "header" {
    type        = bool
    description = "Whether the first record names the columns"
    default     = true
  }
  input "infer_types" {
    type        = bool
    description = "Whether to turn numbers, true, false and empty fields into JSON numbers, booleans and null; otherwise every value is text"
    default     = false
  }

  output "columns" { type = list(string) }
  output "rows" { type = list(map(any)) }
  output "count" { type = integer }

  run = file("csv_to_json.ts")
}

test "records become objects" {
  tool  = "csv_to_json"
  input = { csv = "id,name\r\n1,Ada\r\n2,\"Grace \"\"Amazing\"\" Hopper\"\r\n" }
  expect {
    output = {
      columns = ["id", "name"]
      rows    = [{ id = "1", name = "Ada" }, { id = "2", name = "Grace \"Amazing\" Hopper" }]
      count   = 2
    }
  }
}

test "types are inferred when asked for" {
  tool  = "csv_to_json"
  input = { csv = "1;true;007;;-2.5e3", delimiter = ";", header = false, infer_types = true }
  expect {
    output = {
      columns = ["column_1", "column_2", "column_3", "column_4", "column_5"]
      rows    = [{ column_1 = 1, column_2 = true, column_3 = "007", column_4 = null, column_5 = -2500 }]
      count   = 1
    }
  }
}

test "quoted fields span lines" {
  tool  = "csv_to_json"
  input = { csv = "note\n\"a,\nb\"" }
  expect {
    output = { columns = ["note"], rows = [{ note = "a,\nb" }], count = 1 }
  }
}

test "a record of another length is named" {
  tool  = "csv_to_json"
  input = { csv = "a,b\n1,2\n3\n" }
  expect {
    error           = "EXECUTION_ERROR"
    message_matches = "^line 3 has 1 field, the first record has 2$"
  }
}

test "a quote that is never closed is named" {
  tool  = "csv_to_json"
  input = { csv = "a,b\n1,\"2" }
  expect {
    error           = "EXECUTION_ERROR"
    message_matches = "^the quote opened in line 2 is never closed$"
  }
}
