# The authenticated caller and its claims. The model does not see an input with
# `from` and cannot set it: a CEL expression computes it on the server, before
# the arguments are validated.

tool "who_am_i" {
  title       = "Tell the caller who it is"
  description = <<-TEXT
    Returns {known, claimed}: the principal that authentication has proved, and
    the agent that the caller says it is. Only the first decides what is
    allowed. Use it to find out why a policy denies.
  TEXT
  read_only   = true
  open_world  = false

  input "principal" {
    type = string
    from = "principal.id"
  }
  input "scopes" {
    type = list(string)
    from = "principal.scopes"
  }

  output "known" {
    field "principal" { type = string }
    field "scopes" { type = list(string) }
  }
  output "claimed" {
    field "agent_id" { type = string }
    field "model" {
      type     = string
      required = false
    }
  }

  run = <<JS
    const claimed = { agent_id: agent.agent_id };
    if (agent.model !== null) claimed.model = agent.model;
    return { known: { principal: input.principal, scopes: input.scopes }, claimed };
  JS
}

test "a stranger is anonymous" {
  tool = "who_am_i"
  expect {
    output = {
      known   = { principal = "anonymous", scopes = [] }
      claimed = { agent_id = "anonymous" }
    }
  }
}

test "what is known and what is claimed stay apart" {
  tool      = "who_am_i"
  principal = { id = "ci", scopes = ["crm:read"] }
  agent     = { agent_id = "desk", model = "m-1" }
  expect {
    output = {
      known   = { principal = "ci", scopes = ["crm:read"] }
      claimed = { agent_id = "desk", model = "m-1" }
    }
  }
}

test "nobody can say who they are" {
  tool  = "who_am_i"
  input = { principal = "root" }
  expect {
    error           = "INVALID_INPUT"
    message_matches = "principal"
  }
}
