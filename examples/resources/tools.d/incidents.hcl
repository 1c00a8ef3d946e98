# incident://INC-7 and its like are resources that a body makes. Clients complete
# the id while their user types it.
resource_template "incident" {
  title        = "Incident"
  description  = "What is known of an incident"
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

# Resources have policies as tools have. The variables of a template are its
# arguments.
policy "customers_are_private" {
  resources = ["incident"]
  when      = "args.id.startsWith('CUST-')"
  allow     = "principal.scopes.exists(s, s == 'customers')"
  reason    = "Incidents of customers need the scope customers"
}

# A prompt is a conversation for a person to begin with.
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

test "an incident is found by its id" {
  resource = "incident://INC-12"
  expect {
    text      = "{\"id\":\"INC-12\",\"title\":\"The database is slow\",\"runbook\":\"database/failover.md\",\"open\":false}"
    mime_type = "application/json"
  }
}

test "an id that nobody gave" {
  resource = "incident://INC-1"
  expect {
    error           = "EXECUTION_ERROR"
    message_matches = "^there is no incident INC-1$"
  }
}

test "what is no id is no incident" {
  resource = "incident://inc-7"
  expect { error = "TOOL_NOT_FOUND" }
}

test "incidents of customers are not for everybody" {
  resource = "incident://CUST-3"
  expect { denied_by = "customers_are_private" }
}

test "those who may see customers see their incidents" {
  resource  = "incident://CUST-3"
  principal = { id = "ada", scopes = ["customers"] }
  expect { mime_type = "application/json" }
}

test "a review begins with the incident" {
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

test "a review is of something" {
  prompt = "incident_review"
  expect { error = "INVALID_INPUT" }
}
