package report

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/base/observe"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// receiver is a web server for reports.
type receiver struct {
	*httptest.Server
	posts chan post

	mu      sync.Mutex
	answers []http.HandlerFunc // one for each request; then 204
}

type post struct {
	header http.Header
	report Report
}

func newReceiver(t *testing.T, answers ...http.HandlerFunc) *receiver {
	s := &receiver{posts: make(chan post, 1000), answers: answers}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

func (s *receiver) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var p post
	body, err := io.ReadAll(r.Body)
	if err == nil {
		err = json.Unmarshal(body, &p.report)
	}
	if err != nil || r.Method != http.MethodPost {
		http.Error(w, "no report", http.StatusBadRequest)
		return
	}
	p.header = r.Header
	s.mu.Lock()
	answer := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }
	if len(s.answers) > 0 {
		answer, s.answers = s.answers[0], s.answers[1:]
	}
	s.mu.Unlock()
	answer(w, r)
	s.posts <- p
}

func status(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
}

// bench is a reporter with its log and counts. Each report has another uptime.
type bench struct {
	*Reporter
	mu       sync.Mutex
	settings Settings
	off      bool
	made     int64
	counts   map[string]int
	log      bytes.Buffer
}

func newBench(t *testing.T, s Settings) *bench {
	b := &bench{settings: s, counts: map[string]int{}}
	b.Reporter = New(Options{
		Settings: func() (Settings, bool) {
			b.mu.Lock()
			defer b.mu.Unlock()
			return b.settings, !b.off
		},
		Report: func() Report {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.made++
			return Report{Format: Format, UptimeSeconds: b.made}
		},
		Secret: func(_ context.Context, name string) (string, error) {
			switch name {
			case "token":
				return "s3cret", nil
			case "broken":
				return "a\nb", nil
			}
			return "", errors.New("no such secret")
		},
		Count: func(outcome string) {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.counts[outcome]++
		},
		Logger: slog.New(slog.NewTextHandler(lockedWriter{b}, nil)),
	})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		b.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	return b
}

type lockedWriter struct{ *bench }

func (w lockedWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.log.Write(p)
}

// logged returns the log so far.
func (b *bench) logged() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.log.String()
}

// set changes the settings.
func (b *bench) set(s Settings, off bool) {
	b.mu.Lock()
	b.settings, b.off = s, off
	b.mu.Unlock()
	b.Changed()
}

func TestReporter_posts(t *testing.T) {
	s := newReceiver(t)
	b := newBench(t, Settings{URL: s.URL + "/reports", Token: "token", Every: time.Millisecond})
	for i := range 3 {
		p := <-s.posts
		if p.report.Format != Format || p.report.UptimeSeconds != int64(i+1) || p.header.Get("Authorization") != "Bearer s3cret" || p.header.Get("Content-Type") != "application/json" {
			t.Errorf("post %d: %+v", i, p)
		}
	}
	if text := b.logged(); text != "" {
		t.Errorf("log: %s", text)
	}
}

// TestReporter_failures requires one log line for a series of failures and one for its end, a new
// report for each attempt, and that a redirect is not followed.
func TestReporter_failures(t *testing.T) {
	elsewhere := newReceiver(t)
	redirect := func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, elsewhere.URL, http.StatusTemporaryRedirect)
	}
	s := newReceiver(t, status(500), status(401), redirect, func(w http.ResponseWriter, _ *http.Request) { panic(http.ErrAbortHandler) }, status(404))
	b := newBench(t, Settings{URL: s.URL, Every: time.Millisecond})
	for range 4 { // the aborted one is not among them
		<-s.posts
	}
	for range 2 {
		<-s.posts
	}
	b.mu.Lock()
	failed, text := b.counts[observe.ReportFailed], b.log.String()
	b.mu.Unlock()
	if failed != 5 {
		t.Errorf("%d failures counted", failed)
	}
	if strings.Count(text, "\n") != 2 || !strings.Contains(text, `level=WARN msg="send report" error="the server answered 500`) || !strings.Contains(text, `level=INFO msg="reports delivered again" failures=5`) {
		t.Errorf("log: %s", text)
	}
	if len(elsewhere.posts) > 0 {
		t.Error("a redirect was followed")
	}
}

// TestReporter_settings changes the settings while the reporter waits for an hour.
func TestReporter_settings(t *testing.T) {
	s := newReceiver(t)
	b := newBench(t, Settings{URL: "http://127.0.0.1:1", Every: time.Hour})
	b.set(Settings{URL: s.URL, Token: "absent", Every: time.Millisecond}, false)
	for !strings.Contains(b.logged(), "read token: no such secret") {
		b.Changed()
	}
	b.set(Settings{URL: s.URL, Every: time.Millisecond}, false)
	<-s.posts
	b.set(Settings{}, true)
	b.set(Settings{URL: s.URL, Every: time.Millisecond}, false)
	<-s.posts
	b.set(Settings{URL: s.URL, Token: "broken", Every: time.Millisecond}, false)
	for !strings.Contains(b.logged(), "the secret broken cannot be a bearer token") {
		b.Changed()
	}
	if text := b.logged(); strings.Contains(text, `a\nb`) {
		t.Errorf("the log has a secret: %s", text)
	}
}

func TestRetryDelay(t *testing.T) {
	for _, row := range []struct {
		failures int
		every    time.Duration
		most     time.Duration
	}{{1, time.Hour, time.Second}, {2, time.Hour, 2 * time.Second}, {7, time.Hour, 64 * time.Second}, {1000, time.Hour, time.Hour}, {5, 10 * time.Second, 10 * time.Second}} {
		for range 100 {
			if d := retryDelay(row.failures, row.every); d < row.most/2 || d > row.most {
				t.Fatalf("%d failures: %s", row.failures, d)
			}
		}
	}
}

func TestRetryAfter(t *testing.T) {
	for header, want := range map[string]time.Duration{"": 0, "5": 5 * time.Second, "60000": time.Hour, "-1": 0, "1e3": 0, "999999999999": 0, "Wed, 21 Oct 2026 07:28:00 GMT": 0} {
		if got := retryAfter(&http.Response{Header: http.Header{"Retry-After": {header}}}); got != want {
			t.Errorf("%q: %s", header, got)
		}
	}
}

func TestID(t *testing.T) {
	for _, row := range []struct{ given, machine, host, want string }{
		{"kiosk-1", "m", "h", "kiosk-1"},
		{"", "0123456789abcdef0123456789abcdef", "h", "7e3c"},
		{"", "", "kiosk-1.example.com", "kiosk-1.example.com"},
		{"", "", "", ""},
	} {
		got := ID(row.given, row.machine, row.host)
		switch {
		case row.want == "kiosk-1" || row.want == "kiosk-1.example.com":
			if got != row.want {
				t.Errorf("%+v: %s", row, got)
			}
		case len(got) != 32 || got != ID(row.given, row.machine, row.host) || strings.Contains(got, row.machine) && row.machine != "":
			t.Errorf("%+v: %s", row, got)
		}
	}
}

// TestProblemsOf_noTexts requires that texts of diagnostics are left out, and the list is bounded.
func TestProblemsOf_noTexts(t *testing.T) {
	var list diag.List
	for range maxProblems + 5 {
		list = append(list, diag.Diagnostic{Code: "bad-value", Summary: "canary", Detail: "canary", Notes: []diag.Note{{Message: "canary"}}, Stack: "canary",
			Range: diag.Range{File: strings.Repeat("é", 500), Start: diag.Pos{Line: 3, Column: 7}}})
	}
	problems, omitted := ProblemsOf(list)
	text, err := json.Marshal(problems)
	if err != nil || len(problems) != maxProblems || omitted != 5 || bytes.Contains(text, []byte("canary")) || len(problems[0].File) > maxText || problems[0].Line != 3 || problems[0].Column != 7 {
		t.Errorf("%v %d %d %s", err, len(problems), omitted, text[:200])
	}
	if problems, omitted := ProblemsOf(nil); problems == nil || omitted != 0 {
		t.Error("no problems are null")
	}
}
