# incident://INC-7 and similar URIs are resources that a script creates. Clients
# complete the id while the user types it.
resource_template "incident" {
  title        = "Incident"
  description  = "Details of an incident"
  uri_template = "incident://{id}"
  mime_type    = "application/json"

  param "id" {
    description = "Incident id, like INC-7"
    pattern     = "^[A-Z]+-[0-9]+$"
  }
  complete "id" {
    run = <<JS
      import incidents from "./incidents.json";
      return Object.keys(incidents).filter((id) => id.startsWith(value.toUpperCase()));
    JS
  }

  run = <<JS
    import incidents from "./incidents.json";
    const incident = incidents[params.id];
    if (!incident) throw new ToolError(`there is no incident ${params.id}`);
    return { id: params.id, ...incident };
  JS
}

# Resources have policies like tools. The arguments are the variables of the template.
policy "customers_are_private" {
  resources = ["incident"]
  when      = "args.id.startsWith('CUST-')"
  allow     = "principal.scopes.exists(s, s == 'customers')"
  reason    = "Incidents of customers need the scope customers"
}

# A prompt starts a conversation for a user.
prompt "incident_review" {
  title       = "Review an incident"
  description = "Goes through an incident step by step"

  argument "id" {
    description = "Incident id, like INC-7"
    required    = true
    complete { values = ["INC-7", "INC-12"] }
  }
  argument "depth" { values = ["short", "thorough"] }

  message "user" { text = "Review incident {{id}} step by step. {{depth}}" }
  message "user" {
    link {
      uri  = "incident://{{id}}"
      name = "{{id}}"
    }
  }
  message "assistant" { text = "I read the incident first, and then its runbook." }
}

test "find an incident by id" {
  resource = "incident://INC-12"
  expect {
    text      = "{\"id\":\"INC-12\",\"title\":\"The database is slow\",\"runbook\":\"database/failover.md\",\"open\":false}"
    mime_type = "application/json"
  }
}

test "an unknown id" {
  resource = "incident://INC-1"
  expect {
    error           = "EXECUTION_ERROR"
    message_matches = "^there is no incident INC-1$"
  }
}

test "an invalid id" {
  resource = "incident://inc-7"
  expect { error = "TOOL_NOT_FOUND" }
}

test "incidents of customers are restricted" {
  resource = "incident://CUST-3"
  expect { denied_by = "customers_are_private" }
}

test "callers who may see customers see their incidents" {
  resource  = "incident://CUST-3"
  principal = { id = "ada", scopes = ["customers"] }
  expect { mime_type = "application/json" }
}

test "a review starts with the incident" {
  prompt = "incident_review"
  input  = { id = "INC-7", depth = "Be short." }
  expect {
    messages = [
      { role = "user", text = "Review incident INC-7 step by step. Be short." },
      { role = "user", content = { type = "resource_link", uri = "incident://INC-7", name = "INC-7" } },
      { role = "assistant", text = "I read the incident first, and then its runbook." },
    ]
  }
}

test "a review requires an incident" {
  prompt = "incident_review"
  expect { error = "INVALID_INPUT" }
}
