# A tool with a new result for each call is not idempotent, and declares it:
# clients then do not repeat a call automatically.

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

  # A test cannot compare a random value. The schema checks its form instead, in
  # every call and so in the tests too.
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
