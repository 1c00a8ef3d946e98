# The two ways in which a script fails: a result that is an error, which the model
# sees, and an error of the protocol, which the client sees.

tool "test_error_handling" {
  description = "Fails, always."
  read_only   = true
  run         = <<JS
    throw new ToolError("This tool intentionally returns an error for testing");
  JS
}

# The suite calls this one without the capability to sample, and wants to hear
# that it is missing: the script does nothing about it.
tool "test_missing_capability" {
  description = "Needs a client that samples for it."
  read_only   = true
  allow {
    ask { sample = true }
  }
  run = <<JS
    const messages = [{ role: "user", content: { type: "text", text: "Say hello" } }];
    return (await sample({ messages, maxTokens: 10 })).content.text;
  JS
}

test "the message is the text of the error" {
  tool = "test_error_handling"
  expect {
    error           = "EXECUTION_ERROR"
    message_matches = "^This tool intentionally returns an error for testing$"
  }
}

test "a client that can sample is asked" {
  tool = "test_missing_capability"
  mock "sample" "sample" { text = "hello" }
  expect { text = "hello" }
}
