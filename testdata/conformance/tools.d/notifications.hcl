# What a script may send before its result.

tool "test_tool_with_logging" {
  description = "Sends three log messages, then returns."
  read_only   = true
  run         = <<JS
    const pause = () => new Promise((done) => setTimeout(done, 50));
    log.info("Tool execution started");
    await pause();
    log.info("Tool processing data");
    await pause();
    log.info("Tool execution completed");
    return "Tool with logging executed successfully";
  JS
}

# Log messages are for clients that asked for them: the suite does not, and
# must not get this one.
tool "test_logging_tool" {
  description = "Sends a log message, then returns."
  read_only   = true
  run         = <<JS
    log.info("This is for whoever asked for it");
    return "logged";
  JS
}

tool "test_tool_with_progress" {
  description = "Reports its progress three times, then returns."
  read_only   = true
  run         = <<JS
    const pause = () => new Promise((done) => setTimeout(done, 50));
    progress(0, 100, "Completed step 0 of 100");
    await pause();
    progress(50, 100, "Completed step 50 of 100");
    await pause();
    progress(100, 100, "Completed step 100 of 100");
    return "Tool with progress executed successfully";
  JS
}

# The stream of a call holds notifications and its response, never a request of
# the server, whatever the client can do.
tool "test_streaming_elicitation" {
  description = "Reports its progress, then returns, and asks for nothing."
  read_only   = true
  run         = <<JS
    progress(1, 1);
    return "nothing to ask";
  JS
}

test "logging changes no result" {
  tool = "test_tool_with_logging"
  expect { text = "Tool with logging executed successfully" }
}

test "progress changes no result" {
  tool = "test_tool_with_progress"
  expect { text = "Tool with progress executed successfully" }
}

tool "test_reconnection" {
  description = "Closes its stream before the result, which the client comes back for."
  timeout     = "5s"
  read_only   = true

  run = <<JS
    progress.disconnect();
    await new Promise((resolve) => setTimeout(resolve, 100));
    return "Reconnection test completed successfully.";
  JS
}

test "the result comes all the same" {
  tool = "test_reconnection"
  expect { text = "Reconnection test completed successfully." }
}
