# Every page below runbooks/ is a resource: runbook://restart.md and so on. A new file
# is a new resource. Saving a file notifies its subscribers.
resource_folder "runbooks" {
  root        = "runbooks"
  glob        = ["**/*.md"]
  uri_prefix  = "runbook://"
  description = "A runbook of the operations team"
  labels      = { team = "ops" }
  annotations {
    audience = ["user", "assistant"]
    priority = 0.8
  }
}

test "a page has the text of its file" {
  resource = "runbook://database/failover.md"
  expect {
    text      = file("runbooks/database/failover.md")
    mime_type = "text/markdown"
  }
}

test "a missing page is not found" {
  resource = "runbook://gone.md"
  expect { error = "TOOL_NOT_FOUND" }
}
