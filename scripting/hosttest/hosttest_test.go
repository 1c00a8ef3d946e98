package hosttest

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/mcpd/mcpd/scripting"
)

// greeter is a small valid host.
type greeter struct{ secret string }

func (g greeter) Do(ctx context.Context, _ int, op string, payload []byte) ([]byte, error) {
	var question struct {
		Name *string `json:"name"`
	}
	switch {
	case op == "log":
		return nil, nil
	case op != "greet":
		return nil, &scripting.HostError{Code: scripting.NotGranted, Message: "there is no such operation"}
	case json.Unmarshal(payload, &question) != nil || question.Name == nil:
		return nil, &scripting.HostError{Code: scripting.Invalid, Message: "a name is needed"}
	case *question.Name == "nobody":
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return json.Marshal("hello " + *question.Name)
}

// asker is a host with a client that has all capabilities but roots, and responds later. breaks
// names the violated part of the contract.
type asker struct{ breaks string }

func (a asker) Do(_ context.Context, _ int, op string, payload []byte) ([]byte, error) {
	var ask struct {
		Requests []struct{ Method string }
	}
	broken := json.Unmarshal(payload, &ask) != nil || len(ask.Requests) == 0
	switch {
	case op != "ask":
		return nil, &scripting.HostError{Code: scripting.NotGranted, Message: "there is no such operation"}
	case broken && a.breaks != "refusals":
		return nil, &scripting.HostError{Code: scripting.Invalid, Message: "a request is needed"}
	case !broken && ask.Requests[0].Method == "roots/list":
		refusal := &scripting.HostError{Code: scripting.Capability, Message: "the client has no roots", Details: []byte(`{"requiredCapabilities":{"roots":{}}}`)}
		if a.breaks == "details" {
			refusal.Details = nil
		}
		return nil, refusal
	}
	switch a.breaks {
	case "suspension":
		return nil, &scripting.HostError{Code: scripting.Unavailable, Message: "there is no answer yet"}
	case "emptiness":
		return []byte("{}"), scripting.ErrSuspended
	case "payload":
		clear(payload)
	}
	return nil, fmt.Errorf("wait for the client: %w", scripting.ErrSuspended)
}

func askSuite(breaks string) Suite {
	return Suite{
		New: func(*testing.T) scripting.Host { return asker{breaks} },
		Operations: []Operation{{
			Op:                "ask",
			Suspended:         `{"requests":[{"key":"a","method":"elicitation/create","params":{}}]}`,
			MissingCapability: `{"requests":[{"key":"a","method":"roots/list","params":{}}]}`,
		}},
	}
}

func TestSuite_suspendingHost(t *testing.T) { askSuite("").Run(t) }

// TestSuite_brokenHost runs the suite in another process, where it must fail.
func TestSuite_brokenHost(t *testing.T) {
	const variable = "HOSTTEST_BREAKS"
	if breaks := os.Getenv(variable); breaks != "" {
		askSuite(breaks).Run(t)
		return
	}
	for breaks, want := range map[string]string{
		"refusals":   "suspended instead of an error",
		"details":    "the details are not",
		"suspension": "not suspended: UNAVAILABLE",
		"emptiness":  "a suspended operation has a response",
		"payload":    "the host changed the payload",
	} {
		suite := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestSuite_brokenHost$")
		suite.Env = append(os.Environ(), variable+"="+breaks)
		if out, err := suite.CombinedOutput(); err == nil || !strings.Contains(string(out), want) {
			t.Errorf("a host that breaks %s: %v\n%s", breaks, err, out)
		}
	}
}

func TestSuite_validHost(t *testing.T) {
	Suite{
		New: func(*testing.T) scripting.Host { return greeter{secret: "s3cret"} },
		Operations: []Operation{
			{Op: "greet", Payload: `{"name":"world"}`, Blocking: `{"name":"nobody"}`},
			{Op: "log", Payload: `{"level":"info","message":"x"}`, OneWay: true},
		},
		Secrets: []string{"s3cret"},
	}.Run(t)
}
