package rest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/auth/authn"
	"github.com/mcpd/mcpd/internal/base/jsonguard"
	"github.com/mcpd/mcpd/internal/protocol/mcp"
	"github.com/mcpd/mcpd/internal/protocol/transport/httpguard"
)

func TestExecute_request(t *testing.T) {
	anonymous := identity.Agent{AgentID: "anonymous", RequestID: "req-1"}
	rows := []struct {
		name   string
		body   string
		header http.Header
		want   call.Request
	}{
		{"tool only", `{"tool":"a"}`, nil, call.Request{Name: "a"}},
		{"arguments unchanged", ` { "arguments" : { "x" : [1, {"y":"}\""}] } , "tool":"a"}`, nil, call.Request{Name: "a", Arguments: json.RawMessage(`{ "x" : [1, {"y":"}\""}] }`)}},
		{"no arguments", `{"tool":"a","arguments":null,"agent":null}`, nil, call.Request{Name: "a"}},
		{"escapes", `{"to\u006fl":"\u0061\n"}`, nil, call.Request{Name: "a\n"}},
		{"agent in body", `{"tool":"a","agent":{"agent_id":"bot","model":"m","metadata":{"k":"v"}}}`, nil, call.Request{
			Name: "a", Caller: identity.Caller{Agent: identity.Agent{AgentID: "bot", Model: "m", RequestID: "req-1", Metadata: map[string]string{"k": "v"}}},
		}},
		{"agent in headers", `{"tool":"a"}`, http.Header{"X-Agent-Id": {"bot"}, "X-Agent-Model": {"m"}, "X-Agent-Meta-Team": {"crm"}}, call.Request{
			Name: "a", Caller: identity.Caller{Agent: identity.Agent{AgentID: "bot", Model: "m", RequestID: "req-1", Metadata: map[string]string{"team": "crm"}}},
		}},
		{"agent in both", `{"tool":"a","agent":{"agent_id":"bot"}}`, http.Header{"X-Agent-Id": {"bot"}, "X-Agent-Model": {"m"}}, call.Request{
			Name: "a", Caller: identity.Caller{Agent: identity.Agent{AgentID: "bot", Model: "m", RequestID: "req-1"}},
		}},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			f := customers(t).answers("1")
			w := f.send("POST", ExecutePath, r.header, r.body)
			if w.Code != http.StatusOK {
				t.Fatalf("status %d: %s", w.Code, w.Body)
			}
			if r.want.Caller.Agent.AgentID == "" {
				r.want.Caller.Agent = anonymous
			}
			r.want.Caller.Principal = identity.Anonymous()
			r.want.Caller.Source = identity.Source{IP: "192.0.2.1"} // of httptest
			if diff := cmp.Diff(r.want, f.got); diff != "" {
				t.Errorf("request (-want +got):\n%s", diff)
			}
		})
	}
}

func TestExecute_invalidBody(t *testing.T) {
	rows := []struct {
		body   string
		status int
		says   string
	}{
		{``, 400, ""},
		{`null`, 400, "body must be an object"},
		{`[]`, 400, "body must be an object"},
		{`"tool"`, 400, "body must be an object"},
		{`{}`, 400, "tool is required"},
		{`{"tool":null}`, 400, "tool must be a string"},
		{`{"tool":1}`, 400, "tool must be a string"},
		{`{"Tool":"a"}`, 400, "unknown member"},
		{`{"tool":"a","TOOL":"b"}`, 400, "unknown member"},
		{`{"tool":"a","agent":[]}`, 400, "agent must be an object"},
		{`{"tool":"a","agent":{"agent_id":1}}`, 400, "agent.agent_id must be a string"},
		{`{"tool":"a","agent":{"id":"x"}}`, 400, "unknown"},
		{`{"tool":"a","tool":"b"}`, 400, "two members of the same name"},
		{`{"tool":"a","to\u006fl":"b"}`, 400, "two members of the same name"},
		{`{"tool":"a"}{}`, 400, "text after the JSON value"},
		{`{"tool":"a",}`, 400, ""},
		{`{"tool":"` + "\xff" + `"}`, 400, "UTF-8"},
		{`{"tool":"a","arguments":{"x":` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + `}}`, 400, "limit of 32 levels"},
		{`{"tool":"a","arguments":{"x":[` + strings.Repeat("1,", 100_000) + `1]}}`, 400, "limit of 50000"},
		{`{"tool":"a","arguments":{"x":"` + strings.Repeat("x", 4<<20) + `"}}`, 413, "4194304 bytes"},
	}
	for _, r := range rows {
		f := customers(t).answers("1")
		w := f.execute(r.body)
		var got struct{ Error, Message string }
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
			t.Fatal(err)
		}
		if w.Code != r.status || got.Error != "INVALID_INPUT" || !strings.Contains(got.Message, r.says) || f.calls != 0 {
			t.Errorf("%.60s: status %d, %+v, %d calls", r.body, w.Code, got, f.calls)
		}
	}
}

// Texts of every nesting and size get a response soon: the JSON guard and the
// later code take linear time.
func TestExecute_bodySizes(t *testing.T) {
	for n := 10; n <= 1_000_000; n *= 10 {
		for _, body := range []string{
			strings.Repeat("[", n),
			strings.Repeat(`{"a":`, n),
			`{"tool":"` + strings.Repeat("a", n) + `"}`,
			`{"tool":"` + strings.Repeat(`\n`, n) + `"}`,
			`{"tool":"a","arguments":{` + strings.Repeat(" ", n) + `}}`,
			`{"tool":"a","arguments":{"x":` + strings.Repeat("1", min(n, 300)) + `}}`,
			`{"tool":"a","arguments":{"x":[` + strings.Repeat("0,", n) + `0]}}`,
			strings.Repeat(" ", n) + `{"tool":"a"}`,
			strings.Repeat("\x00", n),
		} {
			w := customers(t).answers("1").execute(body)
			if w.Code != 200 && w.Code != 400 && w.Code != 413 {
				t.Errorf("%d × %.20q: status %d", n, body, w.Code)
			}
		}
	}
}

func TestRequestID(t *testing.T) {
	f := customers(t).answers("1")
	for _, r := range []struct{ method, path, body, want string }{
		{"GET", CapabilitiesPath, "", "req-1"},
		{"PUT", CapabilitiesPath, "", "req-1"},
		{"GET", "/", "", "req-1"},
		{"POST", ExecutePath, "{", "req-1"},
		{"POST", ExecutePath, `{"tool":"a"}`, "req-1"},
		{"POST", ExecutePath, `{"tool":"a","agent":{"request_id":"req-1"}}`, "req-1"},
	} {
		if got := f.send(r.method, r.path, nil, r.body).Header().Get("X-Request-Id"); got != r.want {
			t.Errorf("%+v: request id %q", r, got)
		}
	}
	made := map[string]bool{}
	for range 3 {
		id := f.send("POST", ExecutePath, http.Header{"X-Request-Id": nil}, `{"tool":"a"}`).Header().Get("X-Request-Id")
		if id == "" || id != f.got.Caller.Agent.RequestID || made[id] {
			t.Errorf("generated id %q, the backend got %q", id, f.got.Caller.Agent.RequestID)
		}
		made[id] = true
	}
	w := f.send("POST", ExecutePath, http.Header{"X-Request-Id": nil}, `{"tool":"a","agent":{"request_id":"mine"}}`)
	if got := w.Header().Get("X-Request-Id"); got != "mine" || f.got.Caller.Agent.RequestID != "mine" {
		t.Errorf("id of the body: %q", got)
	}
	for _, bad := range [][]string{{"a", "b"}, {"é"}, {"a b"}, {strings.Repeat("a", 300)}} {
		w := f.send("POST", ExecutePath, http.Header{"X-Request-Id": bad}, `{"tool":"a"}`)
		if id := w.Header().Get("X-Request-Id"); w.Code != 400 || id == "" || id == bad[0] {
			t.Errorf("%q: status %d, request id %q", bad, w.Code, id)
		}
	}
}

func TestWriteError_status(t *testing.T) {
	rows := []struct {
		err    call.Error
		status int
		retry  string
	}{
		{call.Error{Code: call.InvalidInput}, 400, ""},
		{call.Error{Code: call.ToolNotFound}, 404, ""},
		{call.Error{Code: call.PolicyDenied}, 403, ""},
		{call.Error{Code: call.PolicyDenied, Limited: true}, 429, "1"},
		{call.Error{Code: call.PolicyDenied, Limited: true, RetryAfter: time.Second}, 429, "1"},
		{call.Error{Code: call.PolicyDenied, Limited: true, RetryAfter: time.Second + 1}, 429, "2"},
		{call.Error{Code: call.ExecutionError}, 500, ""},
		{call.Error{Code: call.ExecutionError, RetryAfter: time.Minute}, 500, ""},
		{call.Error{Code: call.ExecutionError, Overloaded: true, RetryAfter: time.Minute}, 503, "60"},
		{call.Error{Code: call.Timeout}, 504, ""},
		{call.Error{Code: "UNHEARD_OF"}, 500, ""},
	}
	for _, r := range rows {
		f := customers(t)
		f.respond.Err = &r.err
		w := f.execute(`{"tool":"a"}`)
		if w.Code != r.status || w.Header().Get("Retry-After") != r.retry {
			t.Errorf("%+v: status %d, Retry-After %q", r.err, w.Code, w.Header().Get("Retry-After"))
		}
		if want := fmt.Sprintf(`{"error":"%s","message":""}`, r.err.Code); w.Body.String() != want {
			t.Errorf("body %s, want %s", w.Body, want)
		}
	}
}

func TestUnauthenticated_bodyNotRead(t *testing.T) {
	f := customers(t).answers("1")
	h := New(f, Options{Middleware: authn.Middleware{Authenticator: func(*http.Request) (identity.Principal, error) {
		return identity.Principal{}, errors.New("the key of canary has expired")
	}}})
	for _, r := range []*http.Request{
		httptest.NewRequest("GET", CapabilitiesPath, nil),
		httptest.NewRequest("POST", ExecutePath, iotest.ErrReader(errors.New("it was read"))),
	} {
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if want := `{"error":"POLICY_DENIED","message":"the credential was not accepted"}`; w.Code != 401 || w.Body.String() != want || f.calls != 0 {
			t.Errorf("%s: status %d, body %s", r.Method, w.Code, w.Body)
		}
	}
}

// slowly is a body that takes a second.
type slowly struct{ io.Reader }

func (s slowly) Read(b []byte) (int, error) {
	time.Sleep(time.Second)
	return s.Reader.Read(b)
}

func TestExecute_accessRevoked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := customers(t).answers("1")
		asked := 0
		h := New(f, Options{Middleware: authn.Middleware{Authenticator: func(*http.Request) (identity.Principal, error) {
			if asked++; asked > 1 {
				return identity.Principal{}, errors.New("the key was revoked")
			}
			return identity.Principal{ID: "ci", Kind: identity.KindKey}, nil
		}}})
		r := httptest.NewRequest("POST", ExecutePath, slowly{strings.NewReader(`{"tool":"a"}`)})
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != 401 || f.calls != 0 {
			t.Errorf("status %d, %d calls", w.Code, f.calls)
		}
	})
}

func TestUnauthenticated_response(t *testing.T) {
	h := New(customers(t), Options{Middleware: authn.Middleware{Authenticator: func(*http.Request) (identity.Principal, error) {
		return identity.Principal{}, &authn.AuthError{Status: 503, Challenge: "Bearer", RetryAfter: 2 * time.Second}
	}}})
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", CapabilitiesPath, nil))
	want := `503 Bearer 2 {"error":"POLICY_DENIED","message":"the credential cannot be checked now; try again later"}`
	if got := fmt.Sprint(w.Code, " ", w.Header().Get("WWW-Authenticate"), " ", w.Header().Get("Retry-After"), " ", w.Body); got != want {
		t.Errorf("response: %s, want %s", got, want)
	}
}

func TestExecute_principalAndSource(t *testing.T) {
	f := customers(t).answers("1")
	p, s := identity.Principal{ID: "ci", Kind: "key"}, identity.Source{IP: "::1", Listener: "127.0.0.1:8080"}
	h := New(f, Options{Middleware: authn.Middleware{
		Authenticator: func(*http.Request) (identity.Principal, error) { return p, nil },
		Source:        func(*http.Request) identity.Source { return s },
	}})
	r := httptest.NewRequest("POST", ExecutePath, strings.NewReader(`{"tool":"a","agent":{"agent_id":"root"}}`))
	r.Header.Set("Content-Type", "application/json; charset=utf-8")
	h.ServeHTTP(httptest.NewRecorder(), r)
	if diff := cmp.Diff(identity.Caller{Principal: p, Source: s, Agent: f.got.Caller.Agent}, f.got.Caller); diff != "" {
		t.Errorf("caller (-want +got):\n%s", diff)
	}
}

func TestExecute_incompleteBody(t *testing.T) {
	rows := []struct {
		err    error
		status int
	}{
		{io.ErrUnexpectedEOF, 400},
		{errors.New("connection reset"), 400},
		{fmt.Errorf("read: %w", context.DeadlineExceeded), 400},
		{timeout{}, 408},
		{httpguard.ErrOverBudget, 503},
	}
	for _, row := range rows {
		r := httptest.NewRequest("POST", ExecutePath, io.MultiReader(strings.NewReader(`{"tool"`), iotest.ErrReader(row.err)))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		New(customers(t).answers("1"), Options{}).ServeHTTP(w, r)
		if w.Code != row.status || strings.Contains(w.Body.String(), "reset") || (w.Code == 503) != (w.Header().Get("Retry-After") == "1") {
			t.Errorf("%v: status %d, body %s", row.err, w.Code, w.Body)
		}
	}
}

func TestExecute_clientDisconnects(t *testing.T) {
	ended := make(chan error, 1)
	b := blocking{customers(t), ended}
	s := httptest.NewServer(New(b, Options{}))
	defer s.Close()
	ctx, cancel := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, "POST", s.URL+ExecutePath, strings.NewReader(`{"tool":"a"}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	go func() { <-ended; cancel() }()
	if resp, err := http.DefaultClient.Do(r); err == nil {
		_ = resp.Body.Close()
		t.Error("the request got a response")
	}
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the call ended with %v", err)
	}
	http.DefaultClient.CloseIdleConnections()
}

// blocking sends nil when a call starts and the cause when it ends.
type blocking struct {
	*fake
	ended chan error
}

func (b blocking) Call(ctx context.Context, _ call.Request) (call.Result, *mcp.Task) {
	b.ended <- nil
	<-ctx.Done()
	b.ended <- ctx.Err()
	return call.Result{Err: &call.Error{Code: call.ExecutionError}}, nil
}

type timeout struct{}

func (timeout) Error() string        { return "i/o timeout" }
func (timeout) Is(target error) bool { return target.Error() == "i/o timeout" }

func TestOptions_limits(t *testing.T) {
	h := New(customers(t).answers("1"), Options{Limits: jsonguard.Limits{Bytes: 20}})
	r := httptest.NewRequest("POST", ExecutePath, strings.NewReader(`{"tool":"a"}           `))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if want := `{"error":"INVALID_INPUT","message":"the request body is longer than 20 bytes"}`; w.Code != 413 || w.Body.String() != want {
		t.Errorf("status %d, body %s", w.Code, w.Body)
	}
}

func TestContentTypes(t *testing.T) {
	rows := []struct {
		header http.Header
		want   int
	}{
		{nil, 200},
		{http.Header{"Content-Type": {"application/json; charset=utf-8"}}, 200},
		{http.Header{"Content-Encoding": {"identity"}}, 200},
		{http.Header{"Content-Type": nil}, 415},
		{http.Header{"Content-Type": {"text/plain"}}, 415},
		{http.Header{"Content-Type": {";"}}, 415},
		{http.Header{"Content-Encoding": {"gzip"}}, 415},
	}
	for _, r := range rows {
		if w := customers(t).answers("1").send("POST", ExecutePath, r.header, `{"tool":"a"}`); w.Code != r.want {
			t.Errorf("%v: status %d, want %d", r.header, w.Code, r.want)
		}
	}
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
