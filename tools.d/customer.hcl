# A tool and its policy. The policy is evaluated before the script, with the
# validated arguments. The caller gets its reason.
#
#   mcpd call get_customer customer_id=C-1042
#   mcpd call get_customer customer_id=C-1042 environment=prod

tool "get_customer" {
  title       = "Look up a customer"
  description = <<-TEXT
    Returns {customer_id, status} of one customer, where status is active,
    suspended or closed. Use it before any action that concerns a customer.
    Reads the dev table unless environment says otherwise.
  TEXT
  read_only   = true
  open_world  = false
  labels      = { team = "crm" } # for policies; clients never see labels

  input "customer_id" {
    type        = string
    description = "Customer id, like C-1042"
    pattern     = "^C-[0-9]{4}$"
  }
  input "environment" {
    type        = string
    description = "Which table to read"
    enum        = ["dev", "prod"]
    default     = "dev"
  }

  output "customer_id" { type = string }
  output "status" {
    type = string
    enum = ["active", "suspended", "closed"]
  }

  run = <<JS
    const tables = {
      dev: { "C-1042": "active", "C-1043": "suspended", "C-2001": "closed" },
      prod: { "C-1042": "suspended", "C-1043": "active", "C-3007": "active" },
    };
    const status = tables[input.environment][input.customer_id];
    if (!status) throw new ToolError(`no customer ${input.customer_id}`);
    return { customer_id: input.customer_id, status };
  JS
}

# The rule depends on the argument that selects the table, and on the principal,
# which is authenticated. It must not depend on `agent`, which the caller can
# claim freely. A caller with a false argument only gets the other table.
#
# examples/policies has the same rule for a whole server, with a variable that
# the operator sets: vars.stage == 'prod'.
policy "blocked_in_prod" {
  tools  = ["get_customer"]
  deny   = "args.environment == 'prod' && !principal.scopes.exists(s, s == 'prod:read')"
  reason = "Blocked in prod"
}

test "a known customer has a status" {
  tool  = "get_customer"
  input = { customer_id = "C-1042" }
  expect {
    output = { customer_id = "C-1042", status = "active" }
  }
}

test "an unknown customer is an error of the tool" {
  tool  = "get_customer"
  input = { customer_id = "C-9999" }
  expect {
    error           = "EXECUTION_ERROR"
    message_matches = "^no customer C-9999$"
  }
}

test "ids are checked before anything runs" {
  tool  = "get_customer"
  input = { customer_id = "1042" }
  expect {
    error           = "INVALID_INPUT"
    message_matches = "/customer_id "
  }
}

test "prod is blocked" {
  tool  = "get_customer"
  input = { customer_id = "C-1042", environment = "prod" }
  expect {
    error           = "POLICY_DENIED"
    message_matches = "^Blocked in prod$"
    denied_by       = "blocked_in_prod"
  }
}

test "a claim opens nothing" {
  tool  = "get_customer"
  input = { customer_id = "C-1042", environment = "prod" }
  agent = { agent_id = "admin", metadata = { scope = "prod:read" } }
  expect {
    denied_by = "blocked_in_prod"
  }
}

test "a principal with the scope may read prod" {
  tool      = "get_customer"
  input     = { customer_id = "C-1042", environment = "prod" }
  principal = { id = "ops", scopes = ["prod:read"] }
  expect {
    output = { customer_id = "C-1042", status = "suspended" }
  }
}
