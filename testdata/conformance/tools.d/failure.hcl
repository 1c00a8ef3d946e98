# The two ways in which a body fails: a result that is an error, which the model
# sees, and an error of the protocol, which the client sees.

tool "test_error_handling" {
  description = "Fails, always."
  read_only   = true
  run         = <<JS
    throw new ToolError("This tool intentionally returns an error for testing");
  JS
}

# The suite calls this one with and without the capability to sample, and wants
# the error where it is missing. In this version no body can ask its client for
# anything, so none could use the capability either: the error is the answer.
tool "test_missing_capability" {
  description = "Needs a client that samples for it."
  read_only   = true
  run         = <<JS
    throw new RpcError(-32021, "this tool needs the client capability sampling", {
      requiredCapabilities: { sampling: {} },
    });
  JS
}

test "the message is the text of the error" {
  tool = "test_error_handling"
  expect {
    error           = "EXECUTION_ERROR"
    message_matches = "^This tool intentionally returns an error for testing$"
  }
}

test "an error of the protocol has a message too" {
  tool = "test_missing_capability"
  expect {
    error           = "EXECUTION_ERROR"
    message_matches = "^this tool needs the client capability sampling$"
  }
}
