# A tool: what it takes, what it returns, and what it does.

tool "hello" {
  description = "Greets somebody by name."
  read_only   = true

  input "name" {
    type        = string
    description = "Who to greet"
    min_length  = 1
    max_length  = 100
  }

  output "greeting" { type = string }

  run = <<JS
    return { greeting: `Hello, ${input.name}!` };
  JS
}

# A rule about who may call it, with what.
policy "no_shouting" {
  tools  = ["hello"]
  deny   = "args.name == args.name.upperAscii() && args.name.size() > 3"
  reason = "Please do not shout"
}

# Tests stand beside the tool; mcpd test runs them.
test "somebody is greeted" {
  tool  = "hello"
  input = { name = "Ada" }
  expect { output = { greeting = "Hello, Ada!" } }
}

test "shouting is refused" {
  tool  = "hello"
  input = { name = "ADA LOVELACE" }
  expect {
    error           = "POLICY_DENIED"
    message_matches = "shout"
  }
}
