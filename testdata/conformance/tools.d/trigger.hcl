# A tool that changes the list of tools: it asks the helper, which edits
# changing.hcl as any editor would. The helper puts its own port in the place
# of port 1 here, in the copy of this file that is served.

tool "test_trigger_tool_change" {
  description = "Has the list of tools changed."
  timeout     = "5s"
  idempotent  = false

  allow {
    http "helper" {
      hosts            = ["127.0.0.1:1"]
      methods          = ["POST"]
      paths            = ["/edit"]
      private_networks = true
    }
  }

  run = <<JS
    const answer = await http.helper.post("http://127.0.0.1:1/edit", {});
    if (!answer.ok) throw new ToolError(answer.text());
    return "the list of tools changes";
  JS
}

test "the helper is asked once" {
  tool = "test_trigger_tool_change"
  mock "http.helper" "POST /edit" {
    status = 204
  }
  expect {
    text  = "the list of tools changes"
    calls = ["http.helper POST /edit"]
  }
}
