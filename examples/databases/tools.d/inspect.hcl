tool "inspect_table_schema" {
  description = "Retrieves the structural database column schemas for a specified table."
  timeout     = "5s"
  read_only   = true
  idempotent  = true

  input "db_path" {
    type        = string
    description = "Path of a SQLite file."
  }
  input "table_name" {
    type        = string
    description = "Name of the table."
    max_length  = 200
  }

  allow {
    sql "files" {
      driver = "sqlite"
      root   = "../data"
      glob   = ["**/*.db", "**/*.sqlite"]
      statement "columns" {
        query = "SELECT name, type, pk FROM pragma_table_info(:table)"
      }
    }
  }

  run = <<JS
    let columns;
    try {
      const db = await sql.files.open(input.db_path);
      columns = await db.query("columns", { table: input.table_name });
    } catch (error) {
      if (error.code === "NOT_FOUND") throw new ToolError(`there is no database ${input.db_path}`);
      if (["OUTSIDE_ROOT", "NOT_GRANTED", "DENIED", "INVALID"].includes(error.code)) {
        throw new ToolError("only databases in the data directory can be inspected");
      }
      throw error; // a busy database is not a wrong path
    }
    if (columns.length === 0) throw new ToolError(`Table '${input.table_name}' does not exist.`);
    const shown = columns.map((c) => `${c.name} (${c.type}${c.pk ? ", PK" : ""})`).join(", ");
    return `Table '${input.table_name}' has ${columns.length} columns: ${shown}.`;
  JS
}

# Tests do not touch the disk: mocks answer.

test "a table with two columns" {
  tool  = "inspect_table_schema"
  input = { db_path = "shop.db", table_name = "users" }
  mock "sql.files" "columns shop.db" {
    json = [{ name = "id", type = "INTEGER", pk = 1 }, { name = "role", type = "TEXT", pk = 0 }]
  }
  expect { text = "Table 'users' has 2 columns: id (INTEGER, PK), role (TEXT)." }
}

test "a missing table" {
  tool  = "inspect_table_schema"
  input = { db_path = "shop.db", table_name = "users); DROP TABLE users; --" }
  mock "sql.files" "columns shop.db" { json = [] }
  expect {
    error           = "EXECUTION_ERROR"
    message_matches = "does not exist"
  }
}

test "a sibling directory" {
  tool  = "inspect_table_schema"
  input = { db_path = "../data-evil/shop.db", table_name = "secrets" }
  expect {
    error           = "EXECUTION_ERROR"
    message_matches = "^only databases in the data directory can be inspected$"
    calls           = []
  }
}

test "a busy database" {
  tool  = "inspect_table_schema"
  input = { db_path = "shop.db", table_name = "users" }
  mock "sql.files" "columns shop.db" { error = "UNAVAILABLE" }
  expect {
    error           = "EXECUTION_ERROR"
    message_matches = "refuses"
  }
}

test "a slow database" {
  tool  = "inspect_table_schema"
  input = { db_path = "shop.db", table_name = "users" }
  mock "sql.files" "columns shop.db" { error = "TIMEOUT" }
  expect {
    error           = "EXECUTION_ERROR"
    message_matches = "refuses"
  }
}
