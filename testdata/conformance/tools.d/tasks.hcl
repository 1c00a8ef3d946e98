# What the suite has go on as tasks.

tool "greet" {
  description = "Greets, and never as a task."
  input "name" { type = string }
  run = <<JS
    return `Hello, ${input.name}!`;
  JS
}

tool "slow_compute" {
  description = "Takes its time."
  timeout     = "2m"
  task        = "optional"
  input "seconds" { type = number }
  input "label" {
    type    = string
    default = ""
  }
  run = <<JS
    await new Promise((done) => setTimeout(done, input.seconds * 1000));
    return `computed ${input.label}`;
  JS
}

tool "failing_job" {
  description = "Fails after a second."
  timeout     = "5s"
  task        = "required"
  run         = <<JS
    await new Promise((done) => setTimeout(done, 1000));
    throw new ToolError("the job failed");
  JS
}

tool "protocol_error_job" {
  description = "Fails by an error of the protocol."
  task        = "optional"
  run         = <<JS
    throw new RpcError(-32603, "the job broke");
  JS
}

tool "confirm_delete" {
  description = "Asks before it deletes."
  task        = "optional"
  input "filename" { type = string }
  allow {
    ask { elicit = true }
  }
  run = <<JS
    const schema = { type: "object", properties: { confirm: { type: "boolean" } }, required: ["confirm"] };
    const { content } = await elicit("confirm", { message: `Delete ${input.filename}?`, schema });
    return content.confirm ? "deleted" : "kept";
  JS
}

tool "multi_input" {
  description = "Asks for two things at once."
  task        = "optional"
  allow {
    ask { elicit = true }
  }
  run = <<JS
    const schema = { type: "object", properties: { name: { type: "string" } }, required: ["name"] };
    const answers = await ask({
      first: elicit.form({ message: "The first name?", schema }),
      second: elicit.form({ message: "The second name?", schema }),
    });
    return `${answers.first.content.name} and ${answers.second.content.name}`;
  JS
}

tool "test_tool_with_task" {
  description = "Asks for a name, and goes on as a task."
  task        = "required"
  ask_first   = true
  allow {
    ask { elicit = true }
  }
  run = <<JS
    const schema = { type: "object", properties: { name: { type: "string" } }, required: ["name"] };
    const { content } = await elicit("user_name", { message: "What is your name?", schema });
    return `Hello, ${content.name}!`;
  JS
}
