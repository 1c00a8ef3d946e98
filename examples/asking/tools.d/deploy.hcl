# A deployment that asks the client's model when the risk is high.

tool "deploy_changes" {
  description = "Deploys a change. One of high risk is judged by the client's model first."
  timeout     = "5s"
  idempotent  = false

  input "service" { type = string }
  input "changes" {
    type      = list(string)
    min_items = 1
  }

  allow {
    ask { sample = true }
  }

  run = <<JS
    const risky = input.changes.filter((change) => /drop|delete|migrat/i.test(change));
    if (risky.length === 0) return `Deployed: ${input.service}`;
    const decision = await sample({
      prompt: `Deployment has high-risk changes: ${risky.join(", ")}. Shall it be done? Begin with the one word PROCEED or STOP, and then say why.`,
      systemPrompt: "You are a cautious DevOps engineer.",
      maxTokens: 500,
    });
    const reasoning = decision.content.text;
    // Only the word that was asked for, where it was asked for: "I would not proceed" holds it, too.
    return /^PROCEED\b/.test(reasoning)
      ? `Deployment executed. LLM reasoning: ${reasoning}`
      : `Deployment cancelled based on LLM analysis: ${reasoning}`;
  JS
}

test "a change of low risk asks nobody" {
  tool  = "deploy_changes"
  input = { service = "crm", changes = ["fix a typo"] }
  expect {
    text  = "Deployed: crm"
    calls = []
  }
}

test "the model agrees" {
  tool  = "deploy_changes"
  input = { service = "crm", changes = ["drop a column"] }
  mock "sample" "sample" { text = "PROCEED: there is a backup." }
  expect {
    text  = "Deployment executed. LLM reasoning: PROCEED: there is a backup."
    calls = ["sample sample"]
  }
}

test "the model would not proceed" {
  tool  = "deploy_changes"
  input = { service = "crm", changes = ["drop a column"] }
  mock "sample" "sample" { text = "I would not proceed." }
  expect { text = "Deployment cancelled based on LLM analysis: I would not proceed." }
}

test "the model is against it" {
  tool  = "deploy_changes"
  input = { service = "crm", changes = ["migrate the users"] }
  mock "sample" "sample" { text = "Wait for the night." }
  expect { text = "Deployment cancelled based on LLM analysis: Wait for the night." }
}
