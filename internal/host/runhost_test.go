package host_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/mcpd/mcpd/internal/base/redact"
	"github.com/mcpd/mcpd/internal/host"
	"github.com/mcpd/mcpd/internal/host/egress"
	"github.com/mcpd/mcpd/internal/host/secrets"
	"github.com/mcpd/mcpd/internal/language/grant"
	"github.com/mcpd/mcpd/scripting"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// the secret of every test; logs are compared without times
const password = "correct-horse-battery"

// lab is a host with recorded log, events and notifications.
type lab struct {
	*host.RunHost
	log    bytes.Buffer
	told   []string
	events []string
	full   error // the error of audit writes
}

func (l *lab) audit(event string, attributes map[string]string) error {
	l.events = append(l.events, fmt.Sprint(event, attributes))
	return l.full
}

func (l *lab) Progress(done float64, total *float64, message string) {
	of := "?"
	if total != nil {
		of = fmt.Sprint(*total)
	}
	l.told = append(l.told, fmt.Sprintf("progress %g/%s %s", done, of, message))
}

func (l *lab) CloseStream() { l.told = append(l.told, "close") }

func (l *lab) Log(level, message string, fields json.RawMessage) {
	l.told = append(l.told, fmt.Sprintf("log %s %s %s", level, message, fields))
}

func newLab(t *testing.T) *lab {
	t.Helper()
	return newLabOf(t, password)
}

// newLabOf returns a lab with a value for its secret.
func newLabOf(t *testing.T, value string) *lab {
	t.Helper()
	l := &lab{}
	logger := slog.New(slog.NewTextHandler(&l.log, &slog.HandlerOptions{
		Level: slog.LevelDebug,
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		},
	}))
	store := secrets.New(secrets.Options{LookupEnv: func(name string) (string, bool) { return value, name == "TOKEN" }})
	store.Set([]secrets.Definition{{Name: "token", Env: "TOKEN"}})
	pool := egress.New(egress.Options{Resolve: store.Resolve, Redact: store.RedactBytes, Logger: logger})
	t.Cleanup(func() {
		if err := pool.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	l.RunHost = &host.RunHost{
		Brokers:    host.Brokers{Egress: pool, Secrets: store, Audit: l.audit, Logger: logger},
		Grants:     &host.Grants{},
		CallerKind: "tool", Name: "t", ID: "c-1", Emit: l,
	}
	return l
}

// do carries out one operation and returns the answer or the error code.
func (l *lab) do(t *testing.T, op, payload string) string {
	t.Helper()
	answer, err := l.Do(t.Context(), 1, op, []byte(payload))
	var refusal *scripting.HostError
	switch {
	case errors.As(err, &refusal):
		return refusal.Code
	case err != nil:
		t.Fatalf("%s %s: %v", op, payload, err)
	}
	return string(answer)
}

func TestLog(t *testing.T) {
	l := newLab(t)
	l.do(t, "log", `{"level":"warn","message":"careful","fields":{"n":1}}`)
	l.do(t, "log", `{"level":"debug","message":"detail","fields":null}`)
	l.do(t, "log", `{"level":"shouted","message":"of no known level"}`)
	wantLog := `level=WARN msg=careful tool=t call_id=c-1 fields="{\"n\":1}"` + "\n" +
		`level=DEBUG msg=detail tool=t call_id=c-1` + "\n" +
		`level=INFO msg="of no known level" tool=t call_id=c-1` + "\n"
	if diff := cmp.Diff(wantLog, l.log.String()); diff != "" {
		t.Errorf("log (-want +got)\n%s", diff)
	}
	if diff := cmp.Diff([]string{`log warning careful {"n":1}`, "log debug detail ", "log info of no known level "}, l.told); diff != "" {
		t.Errorf("emitted (-want +got)\n%s", diff)
	}
}

func TestLog_requestID(t *testing.T) {
	l := newLab(t)
	l.RequestID = "r-1"
	l.do(t, "console", `{"level":"info","message":"here"}`)
	if got, want := l.log.String(), "level=INFO msg=here tool=t call_id=c-1 request_id=r-1\n"; got != want {
		t.Errorf("log %q, want %q", got, want)
	}
}

func TestLog_trace(t *testing.T) {
	l := newLab(t)
	hide := redact.NewText([]byte(`{"pin":"1234-5678"}`), []string{"/pin"})
	l.Sensitive = &hide
	l.do(t, "log", `{"level":"error","message":"Error: no","trace":"at body (tools.d/a.hcl:3:5)\n  3 | f('1234-5678')"}`)
	wantLog := `level=ERROR msg="Error: no" tool=t call_id=c-1 trace="at body (tools.d/a.hcl:3:5)\n  3 | f('[sensitive]')"` + "\n"
	if diff := cmp.Diff(wantLog, l.log.String()); diff != "" {
		t.Errorf("log (-want +got)\n%s", diff)
	}
	if diff := cmp.Diff([]string{"log error Error: no "}, l.told); diff != "" {
		t.Errorf("emitted (-want +got)\n%s", diff)
	}
}

func TestLog_console(t *testing.T) {
	l := newLab(t)
	l.do(t, "console", `{"level":"error","message":"look here"}`)
	if !strings.Contains(l.log.String(), `level=ERROR msg="look here"`) || l.told != nil {
		t.Errorf("log %q, emitted %q", l.log.String(), l.told)
	}
}

func TestLog_inTest(t *testing.T) {
	l := newLab(t)
	l.Mocks = host.NewMocks(nil)
	l.do(t, "log", `{"level":"info","message":"hello"}`)
	l.do(t, "console", `{"level":"info","message":"hello"}`)
	if l.log.Len() > 0 || len(l.told) > 0 {
		t.Errorf("log %q, emitted %v", l.log.String(), l.told)
	}
}

func TestProgress(t *testing.T) {
	l := newLab(t)
	l.do(t, "progress", `{"done":1,"total":4,"message":"one"}`)
	l.do(t, "progress", `{"done":2.5}`)
	if diff := cmp.Diff([]string{"progress 1/4 one", "progress 2.5/? "}, l.told); diff != "" || l.log.Len() != 0 {
		t.Errorf("log %q, emitted (-want +got)\n%s", l.log.String(), diff)
	}
}

func TestEmit_nil(t *testing.T) {
	l := newLab(t)
	l.Emit = nil
	l.do(t, "log", `{"level":"info","message":"still logged"}`)
	l.do(t, "progress", `{"done":1}`)
	if !strings.Contains(l.log.String(), "still logged") {
		t.Errorf("log %q", l.log.String())
	}
}

func TestDo_refused(t *testing.T) {
	l := newLab(t)
	for _, test := range []struct{ op, payload, code string }{
		{"files.read", `{}`, scripting.NotGranted},
		{"", `{}`, scripting.NotGranted},
		{"http.request", `{"grant":"crm","method":"GET","url":"https://crm.example.com/"}`, scripting.NotGranted},
		{"http.request", `{"method":"GET","url":"https://crm.example.com/"}`, scripting.NotGranted},
		{"http.request", `no JSON`, scripting.Invalid},
		{"log", `[]`, scripting.Invalid},
		{"console", `no JSON`, scripting.Invalid},
		{"progress", `{"done":"half"}`, scripting.Invalid},
	} {
		if got := l.do(t, test.op, test.payload); got != test.code {
			t.Errorf("%s %s: got %s, want %s", test.op, test.payload, got, test.code)
		}
	}
	if l.log.Len() != 0 || l.told != nil {
		t.Errorf("a refused operation had an effect: log %q, emitted %q", l.log.String(), l.told)
	}
}

// echoing is a host that responds with the Authorization header.
func echoing(t *testing.T) (*httptest.Server, grant.HTTP) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Echo", r.Header.Get("Authorization"))
		fmt.Fprintf(w, "you sent %s", r.Header.Get("Authorization"))
	}))
	t.Cleanup(server.Close)
	return server, grant.HTTP{
		Name: "echo", Hosts: []string{strings.TrimPrefix(server.URL, "http://")}, PrivateNetworks: true,
		Headers: []grant.Header{{Name: "Authorization", Value: grant.Value{Parts: []grant.Part{{Literal: "Bearer "}, {Secret: "token"}}}}},
	}
}

func TestHTTP_secret(t *testing.T) {
	l := newLab(t)
	server, granted := echoing(t)
	l.HTTP = map[string]grant.HTTP{"echo": granted}
	answer := l.do(t, "http.request", fmt.Sprintf(`{"grant":"echo","method":"GET","url":%q}`, server.URL))
	if !strings.Contains(answer, "you sent Bearer ") {
		t.Fatalf("the host answered %s", answer)
	}
	if strings.Contains(answer, password) {
		t.Errorf("the script sees the secret: %s", answer)
	}
	l.do(t, "log", fmt.Sprintf(`{"level":"info","message":"it is %s","fields":{"token":%q}}`, password, password))
	l.do(t, "console", fmt.Sprintf(`{"level":"info","message":"it is %s"}`, password))
	l.do(t, "progress", fmt.Sprintf(`{"done":1,"message":%q}`, password))
	if strings.Contains(l.log.String(), password) {
		t.Errorf("the log holds the secret:\n%s", l.log.String())
	}
	if told := strings.Join(l.told, "\n"); strings.Contains(told, password) || len(l.told) != 2 {
		t.Errorf("the caller sees the secret:\n%s", told)
	}
}

func TestMocks_http(t *testing.T) {
	l := newLab(t)
	l.HTTP = map[string]grant.HTTP{"crm": {Name: "crm", Hosts: []string{"crm.example.com:443"}, Methods: []string{"GET", "POST"}}}
	l.Mocks = host.NewMocks([]host.Mock{
		{Object: "http.crm", Request: "GET /customers/7?full=1", Status: 200, Headers: map[string]string{"Content-Type": "application/json"}, Body: []byte(`{"id":7}`)},
		{Object: "http.crm", Request: "POST /blob", Status: 201, Body: []byte{0xff, 0x00}},
	})
	for _, test := range []struct{ payload, want string }{
		{
			`{"grant":"crm","method":"GET","url":"https://crm.example.com/customers/7?full=1"}`,
			`{"body":"{\"id\":7}","headers":{"content-type":"application/json"},"status":200,"url":"https://crm.example.com/customers/7?full=1"}`,
		},
		{
			`{"grant":"crm","method":"POST","url":"https://crm.example.com/blob"}`,
			`{"body64":"/wA=","headers":{},"status":201,"url":"https://crm.example.com/blob"}`,
		},
		{`{"grant":"crm","method":"GET","url":"https://crm.example.com/other"}`, scripting.Unavailable},
		{`{"grant":"crm","method":"DELETE","url":"https://crm.example.com/blob"}`, scripting.NotGranted},
		{`{"grant":"other","method":"GET","url":"https://crm.example.com/blob"}`, scripting.NotGranted},
	} {
		if diff := cmp.Diff(test.want, l.do(t, "http.request", test.payload)); diff != "" {
			t.Errorf("%s (-want +got)\n%s", test.payload, diff)
		}
	}
	if diff := cmp.Diff([]string{"http.crm GET /customers/7?full=1", "http.crm POST /blob", "http.crm GET /other"}, l.Mocks.Calls()); diff != "" {
		t.Errorf("calls (-want +got)\n%s", diff)
	}
	if diff := cmp.Diff([]string{"mock \"http.crm\" \"GET /other\" {\n  json = {}\n}"}, l.Mocks.Missing()); diff != "" {
		t.Errorf("missing (-want +got)\n%s", diff)
	}
}

func TestMocks_concurrent(t *testing.T) {
	mocks := host.NewMocks([]host.Mock{{Object: "http.crm", Request: "GET /", Status: 200}})
	call := &host.RunHost{Grants: &host.Grants{HTTP: map[string]grant.HTTP{"crm": {Hosts: []string{"x.example:443"}}}}, Mocks: mocks}
	const together = 20
	done := make(chan error)
	for seq := range together {
		go func() {
			_, err := call.Do(context.Background(), seq, "http.request", []byte(`{"grant":"crm","method":"GET","url":"https://x.example/"}`))
			done <- err
		}()
	}
	for range together {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if got := len(mocks.Calls()); got != together {
		t.Errorf("%d calls stored, want %d", got, together)
	}
}

func TestRedactText_sensitiveArguments(t *testing.T) {
	l := newLab(t)
	hide := redact.NewText(json.RawMessage(`{"pin":"0042-9911"}`), []string{"/pin"})
	l.Sensitive = &hide
	for op, payload := range map[string]string{
		"log":      `{"level":"info","message":"pin 0042-9911","fields":{"pin":"0042-9911"}}`,
		"progress": `{"done":1,"message":"pin 0042-9911"}`,
	} {
		if _, err := l.Do(t.Context(), 0, op, []byte(payload)); err != nil {
			t.Fatal(err)
		}
	}
	if told := strings.Join(l.told, "\n") + l.log.String(); len(l.told) != 2 || strings.Contains(told, "9911") {
		t.Errorf("emitted:\n%s", told)
	}
}
