tool "report" {
  description = "Writes the report of a tenant."
  read_only   = true

  input "tenant" {
    type     = string
    required = true
  }

  run = <<JS
    return `report of ${input.tenant}`;
  JS
}

# One more report is allowed every three minutes.
limit "reports" {
  tools       = ["report"]
  key         = "args.tenant"
  rate        = "20/h"
  burst       = 2
  concurrency = 1
  reason      = "Reports are dear"
}

test "tests are not counted" {
  tool  = "report"
  input = { tenant = "acme" }
  expect { text = "report of acme" }
}
