# A deployment that asks the client's model when the risk is high.

tool "deploy_changes" {
  description = "Deploys a change. The client's model must approve high risk first."
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

    // A model may answer in free text. The answer is a yes only if one sentence says so in one of these forms,
    // no other sentence about it differs, and nothing speaks against it. An unclear answer is a no: the caller
    // can request the deployment again.
    const go = "(?:proceed|proceeding|go ahead|going ahead)";
    const yes = [
      `^(?:yes\\W+)?(?:please )?(?:proceed|go ahead)\\b`,
      `\\b(?:i|we) (?:would |do |strongly |fully )*(?:recommend|suggest|advise|support) (?:that )?(?:we |you |to )?${go}\\b`,
      `\\bmy (?:recommendation|advice) is to ${go}\\b`,
      `\\b(?:you|we|i) (?:can|should|may|would) (?:safely )?${go}\\b`,
      `\\b(?:is|it's|looks|seems) (?:safe|fine|ok|okay|reasonable) to ${go}\\b`,
    ].map((form) => new RegExp(form));
    const about = new RegExp(`\\b${go}\\b`);
    const against = /\b(?:not|no|never|cannot|nor|neither|against|without|unless|until|if|only|once|after|before|but|however|provided|rather|instead|hardly|unsafe|unwise|risky|own risk)\b|n't\b/;
    const stops = /\b(?:stop|cancel|abort|wait|postpone|delay|hold off|reject|refuse|veto)\b|^no\b/;

    function agrees(text) {
      let agreed = false;
      for (const sentence of text.toLowerCase().replace(/[‘’]/g, "'").split(/[.!;:\n]+|(?<=\?)/)) {
        const [said, ...reasons] = sentence.replace(/^\W+/, "").trim().split(/\bbecause\b/);
        if (stops.test(said) || about.test(reasons.join(" "))) return false;
        if (!about.test(said)) continue;
        if (against.test(said) || said.endsWith("?") || !yes.some((form) => form.test(said))) return false;
        agreed = true;
      }
      return agreed;
    }

    return agrees(reasoning)
      ? `Deployment executed. LLM reasoning: ${reasoning}`
      : `Deployment cancelled based on LLM analysis: ${reasoning}`;
  JS
}

test "a low-risk change asks no model" {
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

test "the model recommends it in a sentence" {
  tool  = "deploy_changes"
  input = { service = "crm", changes = ["migrate the users"] }
  mock "sample" "sample" { text = "Based on the analysis, I recommend proceeding with the migration because..." }
  expect { text = "Deployment executed. LLM reasoning: Based on the analysis, I recommend proceeding with the migration because..." }
}

test "the model says not to proceed" {
  tool  = "deploy_changes"
  input = { service = "crm", changes = ["migrate the users"] }
  mock "sample" "sample" { text = "I looked at it. Do not proceed." }
  expect { text = "Deployment cancelled based on LLM analysis: I looked at it. Do not proceed." }
}

test "the model would not proceed" {
  tool  = "deploy_changes"
  input = { service = "crm", changes = ["drop a column"] }
  mock "sample" "sample" { text = "I would not proceed." }
  expect { text = "Deployment cancelled based on LLM analysis: I would not proceed." }
}

test "the model objects" {
  tool  = "deploy_changes"
  input = { service = "crm", changes = ["migrate the users"] }
  mock "sample" "sample" { text = "Wait for the night." }
  expect { text = "Deployment cancelled based on LLM analysis: Wait for the night." }
}
