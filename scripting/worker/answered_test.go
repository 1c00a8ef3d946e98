package worker

import (
	"context"
	"strings"
	"testing"

	"github.com/mcpd/mcpd/scripting"
)

// TestNoAnswerOfAHostReachesAProcessUngated: the body is told, and goes on.
func TestNoAnswerOfAHostReachesAProcessUngated(t *testing.T) {
	e := executor(t, Options{Processes: 1})
	p := program(t, `
try {
  return (await http.api.get("https://x/")).status;
} catch (e) {
  return e.code;
}
`)
	for name, answer := range map[string]string{
		"cut off":        `{"status":`,
		"a name twice":   `{"status":200,"status":201}`,
		"two values":     `{"status":200}{}`,
		"a huge number":  `{"status":1e999}`,
		"no text":        "{\"status\":\"\xff\"}",
		"deeper than we": `{"status":` + deep(answerLimits().Depth+1) + `}`,
		"very deep":      deep(2_000_000),
	} {
		t.Run(name, func(t *testing.T) {
			host := hostFunc(func(context.Context, int, string, []byte) ([]byte, error) { return []byte(answer), nil })
			out, err := e.Run(t.Context(), scripting.Call{Program: p}, host)
			if err != nil || out.Failure != nil || !strings.Contains(string(out.Result.JSON), scripting.Invalid) {
				t.Errorf("%v, %+v", err, out)
			}
		})
	}
}
