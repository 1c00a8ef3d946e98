# Reads a file whose path the caller gives. The path is relative to the root of the
# grant, or absolute within it. Any other path fails before any access to the disk, so
# the script need not check it.

tool "fetch_system_diagnostic" {
  title       = "Find errors in a log file"
  description = "Counts the errors in a diagnostic log file, and returns the first five."
  timeout     = "5s"
  read_only   = true

  input "log_path" {
    type        = string
    description = "Path of the log file, such as app.log"
  }

  output "status" {
    type = string
    enum = ["healthy", "defective"]
  }
  output "scanned" { type = integer }
  output "defects" { type = integer }
  output "first" { type = list(string) }

  allow {
    fs "logs" {
      root     = "../logs"
      max_file = "4MiB"
    }
  }

  run = <<JS
    let lines;
    try {
      lines = await fs.logs.lines(input.log_path);
    } catch (error) {
      if (error.code === "NOT_FOUND") throw new ToolError(`there is no log file ${input.log_path}`);
      if (error.code === "OUTSIDE_ROOT" || error.code === "DENIED") throw new ToolError("only files in the log directory can be read");
      throw error;
    }
    const defects = lines.map((line) => line.trim()).filter((line) => /ERROR|CRITICAL/.test(line));
    return { status: defects.length > 0 ? "defective" : "healthy", scanned: lines.length, defects: defects.length, first: defects.slice(0, 5) };
  JS
}

# Tests do not touch the disk: mocks answer.

test "a log with errors" {
  tool  = "fetch_system_diagnostic"
  input = { log_path = "app.log" }
  mock "fs.logs" "lines app.log" {
    text = "INFO up\n  ERROR disk full\nCRITICAL stopping\n"
  }
  expect {
    output = { status = "defective", scanned = 3, defects = 2, first = ["ERROR disk full", "CRITICAL stopping"] }
    calls  = ["fs.logs lines app.log"]
  }
}

test "a log without errors" {
  tool  = "fetch_system_diagnostic"
  input = { log_path = "./app.log" }
  mock "fs.logs" "lines app.log" { json = ["INFO up", "INFO still up"] }
  expect {
    output = { status = "healthy", scanned = 2, defects = 0, first = [] }
  }
}

test "a missing log" {
  tool  = "fetch_system_diagnostic"
  input = { log_path = "old.log" }
  mock "fs.logs" "lines old.log" { error = "NOT_FOUND" }
  expect {
    error           = "EXECUTION_ERROR"
    message_matches = "^there is no log file old.log$"
  }
}

test "a sibling directory" {
  tool  = "fetch_system_diagnostic"
  input = { log_path = "../logs-evil/app.log" }
  expect {
    error           = "EXECUTION_ERROR"
    message_matches = "^only files in the log directory can be read$"
    calls           = []
  }
}
