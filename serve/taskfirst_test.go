package serve_test

import (
	"fmt"
	"strings"
	"testing"
)

// TestAToolThatAsksFirstBecomesATaskWithTheAnswer: its first question is that
// of the call, its second that of the task.
func TestAToolThatAsksFirstBecomesATaskWithTheAnswer(t *testing.T) {
	c := taskClient{t, listen(t, frontOf(t, `
tool "asks" {
  task      = "required"
  ask_first = true
  allow {
    ask { elicit = true }
  }
  run = <<JS
    const schema = { type: "object", properties: { name: { type: "string" } }, required: ["name"] };
    const ask = async () => (await elicit("name", { message: "Who?", schema })).content.name;
    return [await ask(), await ask()].join(" and ");
  JS
}
`))}
	var asked struct {
		Result struct{ ResultType, RequestState string }
	}
	answer := c.send("tools/call", "asks", `"name":"asks","arguments":{}`)
	if decode(t, answer, &asked); asked.Result.ResultType != "input_required" || asked.Result.RequestState == "" {
		t.Fatalf("got %s", answer)
	}
	made := c.callWith("asks", "{}", fmt.Sprintf(
		`,"requestState":%q,"inputResponses":{"name":{"action":"accept","content":{"name":"Ann"}}}`, asked.Result.RequestState))
	c.answer(c.until(made.ID, "input_required"), `{"name":"Bob"}`)
	if got := c.until(made.ID, "completed"); !strings.Contains(string(got.Result), `"Ann and Bob"`) {
		t.Errorf("got %s", got.Result)
	}
}
