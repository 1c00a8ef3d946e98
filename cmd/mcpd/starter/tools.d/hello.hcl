# A tool: its inputs, its output and its JavaScript code.

tool "hello" {
  description = "Greet a person by name."
  read_only   = true

  input "name" {
    type        = string
    description = "The name of the person"
    min_length  = 1
    max_length  = 100
  }

  output "greeting" { type = string }

  run = <<JS
    return { greeting: `Hello, ${input.name}!` };
  JS
}

# A policy: it decides which calls of the tool are allowed.
policy "no_shouting" {
  tools  = ["hello"]
  deny   = "args.name == args.name.upperAscii() && args.name.size() > 3"
  reason = "Please do not shout"
}

# Tests are in the same file as the tool. Run them with mcpd test.
test "greets by name" {
  tool  = "hello"
  input = { name = "Ada" }
  expect { output = { greeting = "Hello, Ada!" } }
}

test "denies shouting" {
  tool  = "hello"
  input = { name = "ADA LOVELACE" }
  expect {
    error           = "POLICY_DENIED"
    message_matches = "shout"
  }
}
