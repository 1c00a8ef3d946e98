package pipeline

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/fstest"
	"time"
	"unicode/utf8"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/base/state"
	"github.com/mcpd/mcpd/internal/execution/catalog"
	"github.com/mcpd/mcpd/internal/execution/hooks"
	"github.com/mcpd/mcpd/internal/execution/suspend"
	"github.com/mcpd/mcpd/internal/host"
	"github.com/mcpd/mcpd/internal/ops/audit"
	"github.com/mcpd/mcpd/scripting"
)

// authPipeline is a pipeline with a tool that needs an OAuth token of its caller, and the redirect handler.
type authPipeline struct {
	t *testing.T
	*Pipeline
	returns func(*http.Request) http.Handler
}

const innConfig = `
secret "crm" {
  oauth {
    authorize_url    = "https://login.example.com/authorize"
    redirect_url     = "https://mcp.example.com/oauth/crm"
    token_url        = %q
    client_id        = "mcpd"
    private_networks = true
  }
}
`

const innTool = `
tool "mine" {
  title = "What is mine"
  allow {
    http "crm" {
      hosts = ["crm.example.com:443"]
      header "Authorization" { value = "Bearer ${secret.crm}" }
    }
  }
  run = "return (await http.crm.get('https://crm.example.com/')).text()"
}
`

func newAuthPipeline(t *testing.T) *authPipeline {
	t.Helper()
	desk := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"access_token":"the-token-of-ada","token_type":"bearer"}`)
	}))
	t.Cleanup(desk.Close)
	discard := slog.New(slog.DiscardHandler)
	states := &state.Lazy{Logger: discard}
	brokers := host.NewBrokers(host.Options{LookupEnv: func(string) (string, bool) { return "", false }, OpenStore: states.Open, Logger: discard})
	executor := scripting.Inline()
	runner := hooks.New(hooks.Options{Executor: executor, Brokers: brokers, Now: time.Now})
	built := catalog.New(catalog.Options{
		Tools: fstest.MapFS{"mine.hcl": {Data: []byte(innTool)}}, ToolsPath: "tools.d",
		Config: fstest.MapFS{"mcpd.hcl": {Data: fmt.Appendf(nil, innConfig, desk.URL)}}, ConfigPath: "mcpd.hcl", Runner: runner,
	}).Build(catalog.Change{All: true}, nil)
	if built.Problems.HasErrors() {
		t.Fatal(built.Problems)
	}
	brokers.Secrets.Set(built.Base.Secrets)
	p := New(Options{
		Catalog:  func(context.Context) (*catalog.Catalog, error) { return built.Base.Catalog, nil },
		Executor: executor, Brokers: brokers, States: states, FileHooks: runner, Audit: func() *audit.Log { return nil }, Logger: discard, Now: time.Now,
	})
	t.Cleanup(func() {
		for _, closing := range []io.Closer{brokers, executor, states} {
			if err := closing.Close(); err != nil {
				t.Error(err)
			}
		}
	})
	return &authPipeline{t, p, brokers.OAuthCallbacks()}
}

// request returns a call by ada, which may resume from an ask with one response for all requests.
func request(from *call.Ask, answer string) call.Request {
	r := call.Request{
		Kind: call.Tools, Name: "mine", Arguments: json.RawMessage(`{}`), Can: call.Capabilities{URL: true, Form: true},
		Caller: identity.Caller{Principal: identity.Principal{ID: "ada", Kind: identity.KindKey}},
	}
	if from != nil {
		r.Resume = &call.Resume{State: from.State, Responses: map[string]json.RawMessage{}}
		for _, asked := range from.Requests {
			r.Resume.Responses[asked.Key] = json.RawMessage(answer)
		}
	}
	return r
}

// asks returns the input requests of a call by ada.
func (p *authPipeline) asks(from *call.Ask, answer string) *call.Ask {
	p.t.Helper()
	result := p.Execute(p.t.Context(), request(from, answer))
	if result.Ask == nil {
		p.t.Fatalf("no input request: %+v", result.Err)
	}
	return result.Ask
}

// open opens the authorization page as ada, and follows the redirect.
func (p *authPipeline) open(asked *call.Ask) {
	p.t.Helper()
	var params struct{ URL string }
	if err := json.Unmarshal(asked.Requests[0].Params, &params); err != nil {
		p.t.Fatal(err)
	}
	page, err := url.Parse(params.URL)
	if err != nil {
		p.t.Fatal(err)
	}
	r := httptest.NewRequestWithContext(p.t.Context(), http.MethodGet, "/oauth/crm?code=x&state="+page.Query().Get("state"), nil)
	r.Host = "mcp.example.com"
	p.returns(r).ServeHTTP(httptest.NewRecorder(), r)
}

// rehearsed returns the execution of a test block with a response of ada.
func (p *authPipeline) rehearsed(asked *call.Ask, answer string) *execution {
	serving, _ := p.options.Catalog(p.t.Context())
	x := p.newExecution(serving, request(asked, answer))
	x.mocks = host.NewMocks(nil)
	return x
}

// A test block may simulate any caller, but the authorizations belong to real users.
func TestServerRequest_test(t *testing.T) {
	i := newAuthPipeline(t)
	asked := i.asks(nil, "")
	payload, err := json.Marshal(map[string]any{"requests": asked.Requests})
	if err != nil {
		t.Fatal(err)
	}
	x := i.rehearsed(asked, `{"action":"decline"}`)
	x.deliverServerResponses([]state.Ask{{Payload: payload}})
	if again := i.asks(nil, ""); string(again.Requests[0].Params) != string(asked.Requests[0].Params) {
		t.Errorf("a test has ended ada's authorization; she is asked %s", again.Requests[0].Params)
	}
	if x.newSuspension().IsServerRequest(asked.Requests[0]) {
		t.Error("a test makes a request of the server itself")
	}
	x.mocks = nil
	if !x.newSuspension().IsServerRequest(asked.Requests[0]) {
		t.Error("a call makes no request of the server itself")
	}
}

// The journal has only the action of the response.
func TestServerRequest_hiddenFromScript(t *testing.T) {
	i := newAuthPipeline(t)
	page := i.asks(nil, "")
	i.open(page)
	form := i.asks(page, `{"action":"accept"}`)
	again := i.asks(form, `{"action":"accept","content":{"code":"AAAA-AAAA"}}`)
	store, err := i.options.States.Open()
	if err != nil {
		t.Fatal(err)
	}
	x := i.rehearsed(again, "")
	if x.entry = x.catalog.Entry(call.Tools, "mine"); x.entry == nil {
		t.Fatal("there is no tool")
	}
	pause, err := suspend.Open(state.NewSealer(store, time.Now), again.State, state.Want{
		Owner: state.OwnerOf(x.req.Caller.Principal), Definition: x.entry.Key, Arguments: suspend.ArgumentsDigest(map[string]any{}),
	})
	if err != nil {
		t.Fatal(err)
	}
	journal, err := pause.Journal.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	if told := string(journal); strings.Contains(told, "AAAA-AAAA") || strings.Count(told, `"action":"accept"`) != 2 {
		t.Errorf("the script continues with %q", told)
	}
}

// A name that is cut inside a character would not be valid UTF-8 in logs and hooks. A shortened name
// that an item may have would find this item.
func TestTruncateName_character(t *testing.T) {
	for _, kind := range []call.Kind{call.Tools, call.Resources} {
		limit := catalog.MaxAddress(kind)
		for _, character := range []string{"a", "é", "€", "😀"} {
			for start := range 8 {
				got := truncateName(kind, strings.Repeat("a", limit-start)+strings.Repeat(character, 20))
				if !utf8.ValidString(got) || len(got) <= limit || len(got) > limit+8 {
					t.Errorf("%s with %s at %d: %d bytes, the end is %q", kind, character, limit-start, len(got), got[len(got)-8:])
				}
			}
		}
	}
}
