# What the suite asks the client for, in the middle of a call.

tool "test_sampling" {
  description = "Asks the client's model."
  input "prompt" { type = string }
  allow {
    ask { sample = true }
  }
  run = <<JS
    const answer = await sample({ messages: [{ role: "user", content: { type: "text", text: input.prompt } }], maxTokens: 100 });
    return "LLM response: " + answer.content.text;
  JS
}

tool "test_elicitation" {
  description = "Asks the user."
  input "message" { type = string }
  allow {
    ask { elicit = true }
  }
  run = <<JS
    const answer = await elicit({
      message: input.message,
      schema: {
        type: "object",
        properties: {
          username: { type: "string", description: "User's response" },
          email: { type: "string", description: "User's email address" },
        },
        required: ["username", "email"],
      },
    });
    return "User response: " + JSON.stringify(answer);
  JS
}

tool "test_elicitation_sep1034_defaults" {
  description = "Asks the user with defaults."
  allow {
    ask { elicit = true }
  }
  run = <<JS
    const { answer } = await ask({ answer: elicit.form({
      message: "Please review and update the form fields with defaults",
      schema: {
        type: "object",
        properties: {
          name: { type: "string", description: "User name", default: "John Doe" },
          age: { type: "integer", description: "User age", default: 30 },
          score: { type: "number", description: "User score", default: 95.5 },
          status: { type: "string", description: "User status", enum: ["active", "inactive", "pending"], default: "active" },
          verified: { type: "boolean", description: "Verification status", default: true },
        },
        required: [],
      },
    }) });
    return `Elicitation completed: action=${answer.action}, content=${JSON.stringify(answer.content)}`;
  JS
}

tool "test_elicitation_sep1330_enums" {
  description = "Asks the user to choose."
  allow {
    ask { elicit = true }
  }
  run = <<JS
    const { answer } = await ask({ answer: elicit.form({
      message: "Please select options from the enum fields",
      schema: {
        type: "object",
        properties: {
          untitledSingle: { type: "string", enum: ["option1", "option2", "option3"] },
          titledSingle: {
            type: "string",
            oneOf: [
              { const: "value1", title: "First Option" }, { const: "value2", title: "Second Option" }, { const: "value3", title: "Third Option" },
            ],
          },
          legacyEnum: { type: "string", enum: ["opt1", "opt2", "opt3"], enumNames: ["Option One", "Option Two", "Option Three"] },
          untitledMulti: { type: "array", items: { type: "string", enum: ["option1", "option2", "option3"] } },
          titledMulti: {
            type: "array",
            items: {
              anyOf: [
                { const: "value1", title: "First Choice" }, { const: "value2", title: "Second Choice" }, { const: "value3", title: "Third Choice" },
              ],
            },
          },
        },
        required: [],
      },
    }) });
    return `Elicitation completed: action=${answer.action}, content=${JSON.stringify(answer.content)}`;
  JS
}

tool "test_input_required_result_elicitation" {
  description = "Greets the user by name."
  allow {
    ask { elicit = true }
  }
  run = <<JS
    const answer = await elicit("user_name", {
      message: "What is your name?",
      schema: { type: "object", properties: { name: { type: "string" } }, required: ["name"] },
    });
    return `Hello, ${answer.content.name}!`;
  JS
}

tool "test_input_required_result_sampling" {
  description = "Asks the client's model for a capital."
  allow {
    ask { sample = true }
  }
  run = <<JS
    const answer = await sample("capital_question", {
      messages: [{ role: "user", content: { type: "text", text: "What is the capital of France?" } }], maxTokens: 100,
    });
    return answer.content.text;
  JS
}

tool "test_input_required_result_list_roots" {
  description = "Names the client's roots."
  allow {
    ask { roots = true }
  }
  run = <<JS
    const found = await roots("client_roots");
    return "Roots: " + found.map((root) => root.uri).join(", ");
  JS
}

tool "test_input_required_result_request_state" {
  description = "Asks for a confirmation."
  allow {
    ask { elicit = true }
  }
  run = <<JS
    await elicit("confirm", {
      message: "Please confirm",
      schema: { type: "object", properties: { ok: { type: "boolean" } }, required: ["ok"] },
    });
    return "state-ok";
  JS
}

tool "test_input_required_result_tampered_state" {
  description = "Asks for a confirmation, of nobody else."
  allow {
    ask { elicit = true }
  }
  run = <<JS
    await elicit("confirm", {
      message: "Please confirm",
      schema: { type: "object", properties: { ok: { type: "boolean" } }, required: ["ok"] },
    });
    return "state-ok";
  JS
}

tool "test_input_required_result_multiple_inputs" {
  description = "Asks for everything at once."
  allow {
    ask {
      elicit = true
      sample = true
      roots  = true
    }
  }
  run = <<JS
    const answers = await ask({
      user_name: elicit.form({
        message: "What is your name?",
        schema: { type: "object", properties: { name: { type: "string" } }, required: ["name"] },
      }),
      greeting: sample.message({
        messages: [{ role: "user", content: { type: "text", text: "Generate a greeting" } }], maxTokens: 50,
      }),
      client_roots: roots.list(),
    });
    return `${answers.greeting.content.text} ${answers.user_name.content.name}, with ${answers.client_roots.length} roots`;
  JS
}

tool "test_input_required_result_multi_round" {
  description = "Asks twice."
  allow {
    ask { elicit = true }
  }
  run = <<JS
    const first = await elicit("step1", {
      message: "Step 1: What is your name?",
      schema: { type: "object", properties: { name: { type: "string" } }, required: ["name"] },
    });
    const second = await elicit("step2", {
      message: "Step 2: What is your favorite color?",
      schema: { type: "object", properties: { color: { type: "string" } }, required: ["color"] },
    });
    return `${first.content.name} likes ${second.content.color}`;
  JS
}

tool "test_input_required_result_capabilities" {
  description = "Asks for what the client can answer."
  allow {
    ask {
      elicit = true
      sample = true
    }
  }
  run = <<JS
    const message = [{ role: "user", content: { type: "text", text: "Say hello" } }];
    const form = { type: "object", properties: { name: { type: "string" } }, required: ["name"] };
    try {
      return (await sample("greeting", { messages: message, maxTokens: 50 })).content.text;
    } catch (e) {
      if (!(e instanceof CapabilityError)) throw e;
      return (await elicit("user_name", { message: "What is your name?", schema: form })).content.name;
    }
  JS
}
