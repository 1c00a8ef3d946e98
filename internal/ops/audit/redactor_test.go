package audit

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/mcpd/mcpd/identity"
)

// testRedactor redacts one value, "hunter2".
type testRedactor struct{}

func (testRedactor) Redact(text string) string {
	return strings.ReplaceAll(text, "hunter2", "[secret:pw]")
}

func (v testRedactor) RedactJSON(raw json.RawMessage) json.RawMessage {
	if shown := v.Redact(string(raw)); shown != string(raw) {
		return json.RawMessage(shown)
	}
	return raw
}

func TestEncode_redactsCallerText(t *testing.T) {
	const secret = "hunter2"
	long := strings.Repeat("x", maxText-3) + secret // truncated inside the secret
	for name, r := range map[string]*Record{
		"a value":     {Kind: "tool", Name: "t", Arguments: json.RawMessage(`{"a":"hunter2"}`), Values: json.RawMessage(`{"a":["hunter2"]}`)},
		"a name":      {Kind: "tool", Name: "t", Arguments: json.RawMessage(`{"hunter2":1}`), Values: json.RawMessage(`{"hunter2":1}`)},
		"names":       {Kind: "tool", Name: "t", Arguments: json.RawMessage(`{"hunter2":1,"[secret:pw]":2}`), Values: json.RawMessage(`{"hunter2":1,"[secret:pw]":2}`)},
		"items":       {Kind: "tool", Name: "t", Arguments: json.RawMessage(`[{"hunter2":1,"[secret:pw]":2}]`), Values: json.RawMessage(`[{"hunter2":1,"[secret:pw]":2}]`)},
		"what failed": {Kind: "tool", Name: long, URI: long, Outcome: "EXECUTION_ERROR", Message: long},
		"who calls, at length": {Kind: "tool", Name: "t", Caller: identity.Caller{
			Principal: identity.Principal{ID: long, Issuer: long},
			Agent:     identity.Agent{AgentID: long, Model: long, RequestID: long, Metadata: map[string]string{"a": "b", "c": long}},
		}},
		"what a token says of who calls, at length": {Kind: "tool", Name: "t", Caller: identity.Caller{Principal: identity.Principal{
			Scopes: []string{long[maxText-maxName:]}, Groups: []string{long[maxText-maxName:]}, Claims: map[string]any{"a": long, "b": []any{long}},
		}}},
		"who calls": {Kind: "tool", Name: "t", Caller: identity.Caller{
			Principal: identity.Principal{ID: secret, Claims: map[string]any{secret: secret}},
			Agent:     identity.Agent{AgentID: secret, RequestID: secret, Metadata: map[string]string{secret: secret, "[secret:pw]": "x"}},
		}},
	} {
		e, c := newEncoder(make([]byte, keySize), testRedactor{}), newChain(make([]byte, keySize))
		e.outcome(r, clock())
		line, _ := c.append(nil, chainEntry{}, e.body)
		if text := string(line); strings.Contains(text, "hun") || !strings.Contains(text, "[se") {
			t.Errorf("%s: %s", name, text)
		}
		if _, err := parseLine(line[:len(line)-1]); err != nil {
			t.Errorf("%s: invalid line: %v\n%s", name, err, line)
		}
	}
}

func TestEvent_redactsTruncatedSecret(t *testing.T) {
	e := newEncoder(make([]byte, keySize), testRedactor{})
	attributes := map[string]string{"claimed": strings.Repeat("x", maxText-3) + "hunter2", "by": "claim"}
	e.event(&Event{"agent.contradicted", attributes}, clock())
	if text := string(e.body); strings.Contains(text, "hunt") || !strings.Contains(text, `"by":"claim"`) {
		t.Error(text)
	}
	if !strings.HasSuffix(attributes["claimed"], "hunter2") {
		t.Error("the attributes of the caller were changed")
	}
}

func TestEncode_redactorAllocations(t *testing.T) {
	r := refund()
	allocations := func(e *encoder) float64 {
		return testing.AllocsPerRun(200, func() { e.outcome(r, clock()) })
	}
	key := make([]byte, keySize)
	if bare, redacted := allocations(newEncoder(key, nil)), allocations(newEncoder(key, still{})); redacted > bare {
		t.Errorf("%v allocations with a redactor, %v without", redacted, bare)
	}
}

// still redacts nothing.
type still struct{}

func (still) Redact(text string) string                      { return text }
func (still) RedactJSON(raw json.RawMessage) json.RawMessage { return raw }
