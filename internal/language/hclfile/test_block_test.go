package hclfile

import (
	"testing"
)

func TestTestsOfResourcesAndPromptsSayWhatTheyWant(t *testing.T) {
	tests := decodeTools(t, "x.hcl", `
test "a resource" {
  resource = "crm://customers/C-1"
  expect {
    text      = "x"
    mime_type = "text/plain"
  }
}
test "a prompt" {
  prompt = "review"
  input  = { id = "INC-1" }
  expect {
    messages = [
      { role = "user", text = "Review \"INC-1\"" },
      { role = "assistant", content = { type = "image", data = "AAAA" } },
      { role = "user", content = "Thanks" },
    ]
  }
}
test "no arguments" {
  prompt = "review"
  input  = {}
  expect { error = "INVALID_INPUT" }
}
`, Scope{}).Tests
	resource, prompt, none := tests[0], tests[1], tests[2]
	if resource.Resource != "crm://customers/C-1" || resource.Tool+resource.Prompt != "" || *resource.Expect.Text != "x" ||
		resource.Expect.MIMEType != "text/plain" || resource.TargetRange.Start.Line != 3 {
		t.Errorf("got %+v", resource)
	}
	const want = `[{"role":"user","content":{"type":"text","text":"Review \"INC-1\""}},{"role":"assistant","content":{"data":"AAAA","type":"image"}},` +
		`{"role":"user","content":{"type":"text","text":"Thanks"}}]`
	if string(prompt.Expect.Messages) != want || prompt.Prompt != "review" || string(prompt.Input) != `{"id":"INC-1"}` {
		t.Errorf("got %+v with %s", prompt, prompt.Expect.Messages)
	}
	if string(none.Input) != "{}" || none.Expect.Messages != nil {
		t.Errorf("got %+v", none)
	}
}
