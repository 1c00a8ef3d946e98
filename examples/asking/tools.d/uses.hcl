# Four uses of the client's model: approval, analysis, choice, refinement.

tool "delete_database" {
  description = "Deletes a database after the client confirmed it."
  timeout     = "5s"
  destructive = true

  input "name" {
    type    = string
    pattern = "^[a-z_]+$"
  }

  allow {
    ask { sample = true }
  }

  run = <<JS
    const answer = await sample("confirm", {
      prompt: `Confirm: Delete production database '${input.name}'? (yes/no)`,
      maxTokens: 10,
    });
    if (answer.content.text.trim().toLowerCase() !== "yes") throw new ToolError("not confirmed");
    return `deleted ${input.name}`;
  JS
}

tool "explain_log" {
  description = "Asks the client's model for the cause of the error in a log."
  timeout     = "5s"
  read_only   = true

  input "log" {
    type       = string
    max_length = 20000
  }

  allow {
    ask { sample = true }
  }

  run = <<JS
    const answer = await sample({
      prompt: `Here's the log data: ${input.log}. What caused the error?`,
      systemPrompt: "You are a debugging expert.",
      maxTokens: 400,
    });
    return answer.content.text;
  JS
}

tool "choose_backup" {
  description = "Asks the client's model to choose one of three backup strategies."
  timeout     = "5s"
  read_only   = true

  input "situation" { type = string }
  output "strategy" {
    type = string
    enum = ["A", "B", "C"]
  }

  allow {
    ask { sample = true }
  }

  run = <<JS
    const answer = await sample({
      prompt: "We have 3 backup strategies: A (fast, risky), B (balanced), C (slow, safe). "
        + `Which should we use given: ${input.situation}? Answer with one letter.`,
      maxTokens: 5,
    });
    return { strategy: answer.content.text.trim().charAt(0).toUpperCase() };
  JS
}

tool "refine" {
  description = "Asks the client's model to improve a draft three times."
  timeout     = "5s"
  read_only   = true

  input "draft" { type = string }

  allow {
    ask {
      sample     = true
      max_rounds = 3
    }
  }

  run = <<JS
    let draft = input.draft;
    for (let round = 1; round <= 3; round++) {
      const answer = await sample(`round_${round}`, { prompt: `Improve this: ${draft}`, maxTokens: 300 });
      draft = answer.content.text;
      progress(round, 3);
    }
    return draft;
  JS
}

test "no deletion without a yes" {
  tool  = "delete_database"
  input = { name = "users" }
  mock "sample" "confirm" { text = "No!" }
  expect {
    error           = "EXECUTION_ERROR"
    message_matches = "^not confirmed$"
  }
}

test "the user declines the question" {
  tool  = "delete_database"
  input = { name = "users" }
  mock "sample" "confirm" { json = { action = "decline" } }
  expect { error = "EXECUTION_ERROR" }
}

test "a log is explained" {
  tool  = "explain_log"
  input = { log = "disk full" }
  mock "sample" "sample" { text = "The disk is full." }
  expect { text = "The disk is full." }
}

test "a strategy is chosen" {
  tool  = "choose_backup"
  input = { situation = "a small disk" }
  mock "sample" "sample" { text = "b, since it is balanced" }
  expect { output = { strategy = "B" } }
}

test "an answer that is not a strategy" {
  tool  = "choose_backup"
  input = { situation = "none" }
  mock "sample" "sample" { text = "none" }
  expect { error = "EXECUTION_ERROR" }
}

test "a draft is refined three times" {
  tool  = "refine"
  input = { draft = "a" }
  mock "sample" "round_1" { text = "b" }
  mock "sample" "round_2" { text = "c" }
  mock "sample" "round_3" { text = "d" }
  expect {
    text  = "d"
    calls = ["sample round_1", "sample round_2", "sample round_3"]
  }
}
