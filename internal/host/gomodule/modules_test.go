package gomodule

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"runtime"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/scripting"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type runner = func(context.Context, CallInfo, json.RawMessage) (json.RawMessage, error)

func echo(_ context.Context, _ CallInfo, arguments json.RawMessage) (json.RawMessage, error) {
	return arguments, nil
}

func TestNew_invalidModules(t *testing.T) {
	good := []Function{{Name: "f", Run: echo}}
	for want, modules := range map[string][]Module{
		`module "": a name`:                      {{Functions: good}},
		`module "a-b": a name`:                   {{Name: "a-b", Functions: good}},
		`module "1a": a name`:                    {{Name: "1a", Functions: good}},
		`module "then": a name`:                  {{Name: "then", Functions: good}},
		`module "__proto__": a name`:             {{Name: "__proto__", Functions: good}},
		`module "m": the name is used`:           {{Name: "m", Functions: good}, {Name: "m", Functions: good}},
		`module "m": it has no functions`:        {{Name: "m"}},
		`function "constructor": a name`:         {{Name: "m", Functions: []Function{{Name: "constructor", Run: echo}}}},
		`function "zoë": a name`:                 {{Name: "m", Functions: []Function{{Name: "zoë", Run: echo}}}},
		`function "f": the name is used`:         {{Name: "m", Functions: []Function{{Name: "f", Run: echo}, {Name: "f", Run: echo}}}},
		`function "f": it is nil`:                {{Name: "m", Functions: []Function{{Name: "f"}}}},
		`module "m": function "f": out of order`: {{Name: "m", Functions: []Function{{Name: "f", Run: echo, Err: errors.New("out of order")}}}},
		`module "` + strings.Repeat("a", 65):     {{Name: strings.Repeat("a", 65), Functions: good}},
	} {
		if b, err := New(modules, nil); b != nil || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", want, err)
		}
	}
}

// lab returns a broker with one module, and its log.
func lab(t *testing.T, check func(json.RawMessage) error, functions map[string]runner) (*Broker, *bytes.Buffer) {
	t.Helper()
	m := Module{Name: "m", Check: check}
	for name, run := range functions {
		m.Functions = append(m.Functions, Function{Name: name, Run: run})
	}
	log := &bytes.Buffer{}
	b, err := New([]Module{m}, slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	return b, log
}

func TestDo_callInfo(t *testing.T) {
	b, _ := lab(t, nil, map[string]runner{"who": func(_ context.Context, c CallInfo, arguments json.RawMessage) (json.RawMessage, error) {
		c.Caller.Agent.Metadata["k"] = "changed"
		c.Options[0] = '!'
		return json.Marshal([]string{c.Caller.Principal.ID, c.Kind, c.Name, c.ID, string(arguments)})
	}})
	call := CallInfo{
		Caller: identity.Caller{Principal: identity.Principal{ID: "ada"}, Agent: identity.Agent{Metadata: map[string]string{"k": "v"}}},
		Kind:   "tool", Name: "t", ID: "c-1", Options: json.RawMessage(`{"a":1}`),
	}
	got, err := b.Do(t.Context(), call, "m", "who", nil)
	if err != nil || string(got) != `["ada","tool","t","c-1","{}"]` {
		t.Errorf("got %s, %v", got, err)
	}
	if call.Caller.Agent.Metadata["k"] != "v" || string(call.Options) != `{"a":1}` {
		t.Errorf("a function has changed the caller of others: %+v", call)
	}
}

func TestDo_failures(t *testing.T) {
	b, log := lab(t, nil, map[string]runner{
		"refuses": func(context.Context, CallInfo, json.RawMessage) (json.RawMessage, error) {
			return nil, &scripting.HostError{Code: scripting.NotFound, Message: "no account"}
		},
		"fails": func(context.Context, CallInfo, json.RawMessage) (json.RawMessage, error) {
			return nil, errors.New("pw hunter2")
		},
		"panics": func(context.Context, CallInfo, json.RawMessage) (json.RawMessage, error) { panic("hunter2") },
		"exits": func(context.Context, CallInfo, json.RawMessage) (json.RawMessage, error) {
			runtime.Goexit()
			return nil, nil
		},
		"huge": func(context.Context, CallInfo, json.RawMessage) (json.RawMessage, error) {
			return json.Marshal(strings.Repeat("x", maxResult))
		},
		"noise":   func(context.Context, CallInfo, json.RawMessage) (json.RawMessage, error) { return []byte("{"), nil },
		"nothing": func(context.Context, CallInfo, json.RawMessage) (json.RawMessage, error) { return nil, nil },
	})
	for function, want := range map[string]string{
		"refuses": "NOT_FOUND: no account", "fails": "UNAVAILABLE: modules.m.fails failed", "panics": "UNAVAILABLE: modules.m.panics failed",
		"exits": "UNAVAILABLE: modules.m.exits failed", "huge": "TOO_LARGE: the result of modules.m.huge has more than 4 MiB",
		"noise": "UNAVAILABLE: modules.m.noise failed", "nothing": "UNAVAILABLE: modules.m.nothing failed", "absent": "NOT_GRANTED: the module has no such function",
	} {
		if got, err := b.Do(t.Context(), CallInfo{Kind: "tool"}, "m", function, nil); err == nil || err.Error() != want {
			t.Errorf("%s: %s, %v", function, got, err)
		}
	}
	for _, arguments := range []string{`[]`, `null`, `"{}"`, `1`} {
		if got, err := b.Do(t.Context(), CallInfo{}, "m", "refuses", json.RawMessage(arguments)); err == nil || err.Error() != "INVALID: the arguments must be an object" {
			t.Errorf("%s: %s, %v", arguments, got, err)
		}
	}
	for _, want := range []string{"pw hunter2", "panic: hunter2", "called runtime.Goexit", "not JSON"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log lacks %q:\n%s", want, log.String())
		}
	}
}

func TestDo_abandoned(t *testing.T) {
	release := make(chan struct{})
	b, _ := lab(t, nil, map[string]runner{"waits": func(context.Context, CallInfo, json.RawMessage) (json.RawMessage, error) {
		<-release
		return []byte("1"), nil
	}})
	defer close(release)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got, err := b.Do(ctx, CallInfo{}, "m", "waits", nil); !errors.Is(err, context.Canceled) {
		t.Errorf("got %s, %v", got, err)
	}
}

func TestCheck_options(t *testing.T) {
	none, _ := lab(t, nil, map[string]runner{"f": echo})
	if err := none.Check("m", json.RawMessage(`{}`)); err != nil {
		t.Error(err)
	}
	if err := none.Check("m", json.RawMessage(`{"a":1}`)); err == nil {
		t.Error("a module without Check accepts options")
	}
	picky, _ := lab(t, func(options json.RawMessage) error {
		if string(options) != `{"a":1}` {
			panic("no")
		}
		options[0] = '!'
		return nil
	}, map[string]runner{"f": echo})
	options := json.RawMessage(`{"a":1}`)
	if err := picky.Check("m", options); err != nil || string(options) != `{"a":1}` {
		t.Errorf("got %v, and %s", err, options)
	}
	if err := picky.Check("m", json.RawMessage(`{}`)); err == nil {
		t.Error("a panic in Check returns no error")
	}
	var nothing *Broker
	if nothing.Names() != nil || nothing.Functions("m") != nil {
		t.Error("a nil broker has modules")
	}
}
