# Tools that change what is listed: they ask the helper, which edits
# changing.hcl or changing_prompt.hcl as any editor would. The helper puts its
# own port in the place of port 1 here, in the copy of this file that is served.

tool "test_trigger_tool_change" {
  description = "Has the list of tools changed."
  timeout     = "5s"
  idempotent  = false

  allow {
    http "helper" {
      hosts            = ["127.0.0.1:1"]
      methods          = ["POST"]
      paths            = ["/edit/tool"]
      private_networks = true
    }
  }

  run = <<JS
    const answer = await http.helper.post("http://127.0.0.1:1/edit/tool", {});
    if (!answer.ok) throw new ToolError(answer.text());
    return "the list of tools changes";
  JS
}

tool "test_trigger_prompt_change" {
  description = "Has the list of prompts changed."
  timeout     = "5s"
  idempotent  = false

  allow {
    http "helper" {
      hosts            = ["127.0.0.1:1"]
      methods          = ["POST"]
      paths            = ["/edit/prompt"]
      private_networks = true
    }
  }

  run = <<JS
    const answer = await http.helper.post("http://127.0.0.1:1/edit/prompt", {});
    if (!answer.ok) throw new ToolError(answer.text());
    return "the list of prompts changes";
  JS
}

test "the helper is asked once for tools" {
  tool = "test_trigger_tool_change"
  mock "http.helper" "POST /edit/tool" {
    status = 204
  }
  expect {
    text  = "the list of tools changes"
    calls = ["http.helper POST /edit/tool"]
  }
}

test "the helper is asked once for prompts" {
  tool = "test_trigger_prompt_change"
  mock "http.helper" "POST /edit/prompt" {
    status = 204
  }
  expect {
    text  = "the list of prompts changes"
    calls = ["http.helper POST /edit/prompt"]
  }
}
