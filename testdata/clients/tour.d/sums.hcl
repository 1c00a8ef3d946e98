# The plainest calls: one that answers, and those that are refused.

tool "add" {
  description = "Adds two integers. Returns {sum}."
  read_only   = true
  input "a" { type = integer }
  input "b" { type = integer }
  output "sum" { type = integer }
  run = "return { sum: input.a + input.b };"
}

tool "vault" {
  description = "Is not for those who only look around."
  read_only   = true
  run         = "return 'gold';"
}

policy "the_vault_is_hidden" {
  tools    = ["vault"]
  deny     = "principal.id != 'keeper'"
  reason   = "Only the keeper opens the vault"
  disclose = "hide"
}

policy "sums_stay_small" {
  tools  = ["add"]
  deny   = "args.a > 1000 || args.b > 1000"
  reason = "Sums stay small"
}

test "a sum" {
  tool  = "add"
  input = { a = 2, b = 3 }
  expect { output = { sum = 5 } }
}

test "a large sum is denied" {
  tool  = "add"
  input = { a = 2, b = 3000 }
  expect { denied_by = "sums_stay_small" }
}

test "strangers do not know of the vault" {
  tool = "vault"
  expect { error = "TOOL_NOT_FOUND" }
}

test "its keeper does" {
  tool      = "vault"
  principal = { id = "keeper" }
  expect { text = "gold" }
}
