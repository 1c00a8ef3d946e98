# What a call tells before it returns, and a call that never does.

tool "count" {
  description = "Counts to three aloud."
  read_only   = true
  timeout     = "10s"
  run         = <<JS
    for (let n = 1; n <= 3; n++) {
      progress(n, 3, "at " + n);
      log.info("counted", { n });
      await new Promise((done) => setTimeout(done, 1));
    }
    return "counted to three";
  JS
}

tool "endless" {
  description = "Tells that it runs, and runs until it is cancelled."
  read_only   = true
  timeout     = "5m"
  run         = <<JS
    progress(0);
    await new Promise((done) => setTimeout(done, 1));
    for (;;);
  JS
}

# Hooks hear of the end of a call when its script has stopped.
hook "endless" {
  on    = ["start", "error"]
  tools = ["endless"]
  run   = <<JS
    log.warn(event.phase === "start" ? "the script of endless starts" : "the script of endless has stopped");
  JS
}

test "counting" {
  tool = "count"
  expect { text = "counted to three" }
}
