# A tool that gives another answer each time is not idempotent, and says so:
# clients may then not repeat a call on their own.

tool "new_ids" {
  title       = "Make unique ids"
  description = "Returns {ids}: random UUIDs (version 4), different on every call."
  idempotent  = false
  read_only   = true
  open_world  = false

  input "count" {
    type        = integer
    description = "How many"
    default     = 1
    min         = 1
    max         = 100
  }

  # What is random cannot be compared with a value. The schema checks its shape
  # instead, on every call and so in the tests too.
  output "ids" {
    type      = list(string)
    min_items = 1
    max_items = 100
    unique    = true
  }

  run = <<JS
    return { ids: Array.from({ length: input.count }, () => crypto.randomUUID()) };
  JS
}

test "a hundred ids are unique" {
  tool  = "new_ids"
  input = { count = 100 }
  expect { calls = [] } # that it succeeds, and asks nobody
}

test "there is no call for none" {
  tool  = "new_ids"
  input = { count = 0 }
  expect {
    error           = "INVALID_INPUT"
    message_matches = "/count "
  }
}
