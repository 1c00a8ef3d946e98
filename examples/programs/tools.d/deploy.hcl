# A deployment by a program. The client's model may stop it if the risk is high.

tool "deploy_changes" {
  description = "Deploys the changes of a service. The client's model must approve high risk first."
  timeout     = "2m"
  idempotent  = false

  input "service" { type = string }
  input "summary" {
    type       = string
    max_length = 200
  }

  allow {
    exec "plan" {
      path = "/opt/deploy/bin/deploy"
      argv = ["plan", "{service}"]
      param "service" { pattern = "[a-z][a-z0-9-]*" }
      env     = { LANG = "C.UTF-8" }
      timeout = "20s"
    }
    exec "apply" {
      path = "/opt/deploy/bin/deploy"
      argv = ["apply", "--service={service}", "--", "{summary}"]
      param "service" { pattern = "[a-z][a-z0-9-]*" }
      # One line of text. After "--" it may start with a dash.
      param "summary" {
        pattern    = "[^\\x00-\\x1f\\x7f]+"
        max_length = 1000
      }
      env         = { LANG = "C.UTF-8" }
      concurrency = 1
    }
    ask { sample = true }
  }

  run = <<JS
    const { service, summary } = input;
    const plan = await exec.plan({ service });
    if (plan.code !== 0) throw new ToolError(`no plan for ${service}: ${plan.stderr.trim()}`);
    let judgement = "";
    if (!plan.stdout.startsWith("risk: low")) {
      const answer = await sample({
        prompt: `A deployment of ${service} has the plan: ${plan.stdout.trim()}. Shall it be done? Begin with the one word PROCEED or STOP, and then say why.`,
        systemPrompt: "You are a cautious DevOps engineer.",
        maxTokens: 500,
      });
      judgement = answer.content.text.trim();
      // Accept only the requested word at the start: "I would not proceed" contains it too.
      if (!/^PROCEED\b/.test(judgement)) return `Not deployed: ${judgement}`;
    }
    const done = await exec.apply({ service, summary });
    if (done.code !== 0) throw new ToolError(`the deployment failed with code ${done.code}: ${done.stderr.trim()}`);
    return `Deployed ${service}: ${done.stdout.trim()}`;
  JS
}

test "a low-risk change asks no model" {
  tool  = "deploy_changes"
  input = { service = "shop", summary = "fix a typo" }
  mock "exec.plan" "plan shop" { text = "risk: low\n" }
  mock "exec.apply" "apply --service=shop -- \"fix a typo\"" { text = "applied\n" }
  expect {
    text  = "Deployed shop: applied"
    calls = ["exec.plan plan shop", "exec.apply apply --service=shop -- \"fix a typo\""]
  }
}

test "the model agrees" {
  tool  = "deploy_changes"
  input = { service = "crm", summary = "v7" }
  mock "exec.plan" "plan crm" { text = "risk: high\n" }
  mock "sample" "sample" { text = "PROCEED: there is a backup." }
  mock "exec.apply" "apply --service=crm -- v7" { text = "applied\n" }
  expect { text = "Deployed crm: applied" }
}

test "the model would not proceed" {
  tool  = "deploy_changes"
  input = { service = "crm", summary = "v7" }
  mock "exec.plan" "plan crm" { text = "risk: high\n" }
  mock "sample" "sample" { text = "I would not proceed." }
  expect {
    text  = "Not deployed: I would not proceed."
    calls = ["exec.plan plan crm", "sample sample"]
  }
}

test "a failed plan deploys nothing" {
  tool  = "deploy_changes"
  input = { service = "crm", summary = "v7" }
  mock "exec.plan" "plan crm" {
    json = { code = 3, stderr = "no such service" }
  }
  expect {
    error           = "EXECUTION_ERROR"
    message_matches = "no plan for crm: no such service"
    calls           = ["exec.plan plan crm"]
  }
}

test "a service is not an option" {
  tool  = "deploy_changes"
  input = { service = "--all", summary = "v7" }
  expect {
    error           = "EXECUTION_ERROR"
    message_matches = "service does not match"
    calls           = []
  }
}
