package scripting

import (
	"context"
	"testing"
)

// The budgets are allocations, which are steady where times are not.
func TestCallsStayWithinTheirBudget(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector allocates too")
	}
	for _, c := range []struct {
		name, body string
		budget     float64
	}{
		{"a small body", smallBody, 90},
		{"a body that mentions nothing", `return 1`, 60},
		{"an async body", `await null; return 1`, 290},
		{"one request", asyncBody, 370},
		{"one log message", `log.info("x"); return 1`, 100},
	} {
		call := call(compiled(t, tool(c.body)), `{"a":2,"b":3}`)
		host := &staticHost{[]byte(`{"status":200,"headers":{},"body":"{}"}`)}
		got := testing.AllocsPerRun(200, func() {
			if out, err := Inline().Run(context.Background(), call, host); err != nil || out.Failure != nil {
				t.Fatal(err, out.Failure)
			}
		})
		if got > c.budget {
			t.Errorf("%s: %.0f allocations, more than %.0f", c.name, got, c.budget)
		}
	}
}
