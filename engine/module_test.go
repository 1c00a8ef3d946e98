package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/scripting"
)

type account struct {
	Account string `json:"account"`
	Times   int    `json:"times,omitempty"`
}

// ledger returns a module with a grant per account.
func ledger(posted *atomic.Int64) engine.HostModule {
	accounts := func(options json.RawMessage) (list []string, err error) {
		var o struct{ Accounts []string }
		err = json.Unmarshal(options, &o)
		return o.Accounts, err
	}
	return engine.HostModule{
		Name: "ledger",
		Check: func(options json.RawMessage) error {
			if list, err := accounts(options); err != nil || len(list) == 0 {
				return errors.New("accounts must be a list of names")
			}
			return nil
		},
		Functions: []engine.HostFunc{
			engine.NewHostFunc("balance", func(_ context.Context, call engine.HostCall, in account) (map[string]any, error) {
				list, _ := accounts(call.Options)
				for _, name := range list {
					if name == in.Account {
						return map[string]any{"cents": 700, "for": call.Caller.Principal.ID, "by": call.Kind + " " + call.Name}, nil
					}
				}
				return nil, &scripting.HostError{Code: scripting.NotFound, Message: "no account of this name is granted"}
			}),
			engine.NewHostFunc("post", func(context.Context, engine.HostCall, struct{}) (int64, error) { return posted.Add(1), nil }),
			engine.NewHostFunc("fails", func(context.Context, engine.HostCall, struct{}) (int, error) {
				return 0, errors.New("password hunter2")
			}),
			engine.NewHostFunc("panics", func(context.Context, engine.HostCall, struct{}) (int, error) { panic("hunter2") }),
			engine.NewHostFunc("waits", func(ctx context.Context, _ engine.HostCall, _ struct{}) (int, error) {
				<-ctx.Done()
				return 0, ctx.Err()
			}),
		},
	}
}

const ledgerTool = `
tool "books" {
  timeout = "5s"
  input "do" { type = string }
  allow {
    module "ledger" { accounts = ["sales", "costs"] }
  }
  run = <<JS
    const m = modules.ledger;
    const told = (e) => [e.name, e.code, e.message].join(" ");
    switch (input.do) {
      case "balance": return m.balance({ account: "sales" });
      case "other": return m.balance({ account: "wages" }).catch(told);
      case "unfit": return m.balance({ account: 7, more: 1 }).catch(told);
      case "no object": return m.balance([]);
      case "fails": return m.fails().catch(told);
      case "panics": return m.panics().catch(told);
      case "posts": return [await m.post(), await m.post()];
    }
  JS
}
`

func TestModule_call(t *testing.T) {
	var posted atomic.Int64
	log := &logBuffer{}
	s := server(t, engine.Options{Scripts: engine.Scripts{Modules: []engine.HostModule{ledger(&posted)}}, Logger: log.logger(), Files: engine.Files{Tools: files("books.hcl", ledgerTool)}})
	for _, test := range []struct{ do, want string }{
		{"balance", `{"by":"tool books","cents":700,"for":"ada"}`},
		{"other", `"HostError NOT_FOUND no account of this name is granted"`},
		{"unfit", `"HostError INVALID the arguments do not fit: /account must be a string, not a number; /more unknown argument \"more\""`},
		{"fails", `"HostError UNAVAILABLE modules.ledger.fails failed"`},
		{"panics", `"HostError UNAVAILABLE modules.ledger.panics failed"`},
		{"posts", `[1,2]`},
	} {
		got := s.Execute(t.Context(), call.Request{
			Name: "books", Arguments: json.RawMessage(fmt.Sprintf(`{"do":%q}`, test.do)), Caller: identity.Caller{Principal: identity.Principal{ID: "ada"}},
		})
		if got.Err != nil {
			t.Fatalf("%s: %v", test.do, got.Err)
		}
		if diff := cmp.Diff(test.want, string(got.Value)); diff != "" {
			t.Errorf("%s (-want +got)\n%s", test.do, diff)
		}
	}
	if !strings.Contains(log.String(), "password hunter2") || !strings.Contains(log.String(), "function=ledger.panics") {
		t.Errorf("the log lacks the failure:\n%s", log.String())
	}
}

func TestModule_deadline(t *testing.T) {
	s := server(t, engine.Options{Scripts: engine.Scripts{Modules: []engine.HostModule{ledger(nil)}}, Files: engine.Files{Tools: files("t.hcl", `
tool "waits" {
  timeout = "20ms"
  allow {
    module "ledger" { accounts = ["sales"] }
  }
  run = "return modules.ledger.waits();"
}`)}})
	if got := s.Execute(t.Context(), call.Request{Name: "waits"}); got.Err == nil || got.Err.Code != call.Timeout {
		t.Errorf("got %+v", got)
	}
}

func TestModule_replay(t *testing.T) {
	var posted atomic.Int64
	s := server(t, engine.Options{Scripts: engine.Scripts{Modules: []engine.HostModule{ledger(&posted)}}, Files: engine.Files{Tools: files("t.hcl", `
tool "asks" {
  allow {
    module "ledger" { accounts = ["sales"] }
    ask { elicit = true }
  }
  run = <<JS
    const first = await modules.ledger.post();
    await elicit({ message: "Go on?", schema: { type: "object", properties: { ok: { type: "boolean" } } } });
    return [first, await modules.ledger.post()];
  JS
}`)}})
	request := call.Request{Name: "asks", Can: call.Capabilities{Form: true}, Caller: anonymous()}
	ask := mustAsk(t, s.Execute(t.Context(), request))
	request.Resume = respond(ask, `{"ok":true}`)
	wantValue(t, s, request, `[1,2]`)
}

func TestModule_hook(t *testing.T) {
	var posted atomic.Int64
	s := server(t, engine.Options{Scripts: engine.Scripts{Modules: []engine.HostModule{ledger(&posted)}}, Files: engine.Files{Tools: files("t.hcl", `
tool "t" { run = "return 1;" }
hook "h" {
  on = ["end"]
  allow {
    module "ledger" { accounts = ["sales"] }
  }
  run = "await modules.ledger.post();"
}`)}})
	wantValue(t, s, call.Request{Name: "t"}, `1`)
	if err := s.Drain(t.Context()); err != nil || posted.Load() != 1 {
		t.Errorf("%d entries, %v", posted.Load(), err)
	}
}

func TestModule_mock(t *testing.T) {
	var posted atomic.Int64
	s := server(t, engine.Options{Scripts: engine.Scripts{Modules: []engine.HostModule{ledger(&posted)}}, Files: engine.Files{Tools: files("books.hcl", ledgerTool+`
test "with a mock" {
  tool  = "books"
  input = { do = "posts" }
  mock "modules.ledger" "post" { json = 7 }
  expect {
    output = [7, 7]
    calls  = ["modules.ledger post", "modules.ledger post"]
  }
}
test "refused" {
  tool  = "books"
  input = { do = "other" }
  mock "modules.ledger" "balance" { error = "NOT_FOUND" }
  expect { text = "HostError NOT_FOUND balance: the mock refuses" }
}
test "without" {
  tool  = "books"
  input = { do = "posts" }
  expect { output = [1, 2] }
}`)}})
	results, err := s.RunTests(t.Context(), nil)
	if err != nil || len(results) != 3 || !results[0].Passed() || !results[1].Passed() {
		t.Fatalf("got %+v, %v", results, err)
	}
	if told := strings.Join(results[2].Failures, "\n"); !strings.Contains(told, `mock "modules.ledger" "post" {`) {
		t.Errorf("the missing mock is not named: %s", told)
	}
	if posted.Load() != 0 {
		t.Error("a test has run a function")
	}
}

func TestModule_unknown(t *testing.T) {
	s := unloaded(t, engine.Options{Scripts: engine.Scripts{Modules: []engine.HostModule{ledger(nil)}}, Files: engine.Files{Tools: files("t.hcl", `
tool "t" {
  allow {
    module "ledgr" {}
    module "ledger" {}
  }
  run = "return [modules.ledgr, modules.ledger.balances()];"
}`)}})
	_, err := s.Load(t.Context())
	var problems diag.List
	if !errors.As(err, &problems) {
		t.Fatalf("got %v", err)
	}
	var got []string
	for _, p := range problems {
		got = append(got, p.String())
	}
	want := []string{
		`tools.d/t.hcl:4:5: error: there is no module "ledgr"; did you mean "ledger"?`,
		`tools.d/t.hcl:5:5: error: tool "t" grants the module "ledger" with invalid arguments: accounts must be a list of names; write the arguments in the documentation of the module`,
	}
	if diff := cmp.Diff(want, got[:2]); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

func TestModule_invalid(t *testing.T) {
	for want, m := range map[string]engine.HostModule{
		`module "a b"`:            {Name: "a b"},
		`it has no functions`:     {Name: "m"},
		`function "f": input:`:    {Name: "m", Functions: []engine.HostFunc{engine.NewHostFunc("f", func(context.Context, engine.HostCall, int) (int, error) { return 0, nil })}},
		`the function is nil`:     {Name: "m", Functions: []engine.HostFunc{engine.NewHostFunc[struct{}, int]("f", nil)}},
		`function "then": a name`: {Name: "m", Functions: []engine.HostFunc{engine.NewHostFunc("then", func(context.Context, engine.HostCall, struct{}) (int, error) { return 0, nil })}},
	} {
		if s, err := engine.New(engine.Options{Name: "x", Scripts: engine.Scripts{Modules: []engine.HostModule{m}}}); s != nil || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", want, err)
		}
	}
}
