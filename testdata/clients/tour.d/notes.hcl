# Resources and a prompt. The file is edited while clients are subscribed to it.

resource "notes" {
  uri         = "notes://today"
  description = "What is noted today"
  file        = "notes.md"
}

resource_template "day" {
  uri_template = "notes://days/{day}"
  description  = "The notes of one day"
  complete "day" { values = ["monday", "tuesday", "wednesday"] }
  text = "Nothing on {{day}}"
}

prompt "plan" {
  description = "Plan a day"
  argument "day" {
    required = true
    values   = ["monday", "tuesday", "wednesday"]
  }
  message "user" { text = "Plan {{day}}" }
}

test "the notes" {
  resource = "notes://today"
  expect {
    text      = "Nothing yet.\n"
    mime_type = "text/markdown"
  }
}

test "a day" {
  resource = "notes://days/monday"
  expect { text = "Nothing on monday" }
}

test "a plan" {
  prompt = "plan"
  input  = { day = "monday" }
  expect { messages = [{ role = "user", text = "Plan monday" }] }
}
