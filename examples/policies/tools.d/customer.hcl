# A tool that reads and one that writes. Their data is in a file so that the example
# runs anywhere. A real tool would query a system with a grant.

tool "get_customer" {
  description = "Returns {customer_id, status} of one customer."
  read_only   = true

  input "customer_id" {
    type    = string
    pattern = "^C-[0-9]{4}$"
  }

  output "customer_id" { type = string }
  output "status" { type = string }

  run = <<JS
    import { statusOf } from "./customers.js";
    return { customer_id: input.customer_id, status: statusOf(input.customer_id) };
  JS
}

tool "set_customer_status" {
  description = "Changes the status of one customer. Returns {customer_id, before, after}."
  read_only   = false
  destructive = true

  input "customer_id" {
    type    = string
    pattern = "^C-[0-9]{4}$"
  }
  input "status" {
    type = string
    enum = ["active", "suspended", "closed"]
  }

  output "customer_id" { type = string }
  output "before" { type = string }
  output "after" { type = string }

  run = <<JS
    import { statusOf } from "./customers.js";
    return { customer_id: input.customer_id, before: statusOf(input.customer_id), after: input.status };
  JS
}

tool "admin_export" {
  description = "Returns the ids of all customers."
  read_only   = true

  output "customer_ids" { type = list(string) }

  run = <<JS
    import { all } from "./customers.js";
    return { customer_ids: all() };
  JS
}

# Tool files have policies too, which run after those of the configuration file. All
# must allow, and the first denial wins.
policy "closing_needs_a_lead" {
  tools  = ["set_customer_status"]
  when   = "args.status == 'closed'"
  allow  = "principal.groups.exists(g, g == 'leads')"
  reason = <<CEL
    "Only a lead may close " + args.customer_id
  CEL
}

test "anyone may read" {
  tool  = "get_customer"
  input = { customer_id = "C-1042" }
  expect {
    output = { customer_id = "C-1042", status = "active" }
  }
}

test "a lead may close a customer" {
  tool      = "set_customer_status"
  input     = { customer_id = "C-1042", status = "closed" }
  principal = { id = "dana", groups = ["leads"], scopes = ["admin"] }
  expect {
    output = { customer_id = "C-1042", before = "active", after = "closed" }
  }
}

test "nobody else may close a customer" {
  tool      = "set_customer_status"
  input     = { customer_id = "C-1042", status = "closed" }
  principal = { id = "sam", scopes = ["admin"] }
  expect {
    error           = "POLICY_DENIED"
    denied_by       = "closing_needs_a_lead"
    message_matches = "^Only a lead may close C-1042$"
  }
}

test "a hidden tool does not exist" {
  tool = "admin_export"
  expect {
    error     = "TOOL_NOT_FOUND"
    denied_by = "admin_tools_are_for_admins"
  }
}
