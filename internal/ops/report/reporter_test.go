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
	"testing/synctest"
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
	lines    chan string // of the log
	stop     func()      // ends Run, and waits for it
}

func newBench(t *testing.T, s Settings, change ...func(*Reporter)) *bench {
	b := &bench{settings: s, counts: map[string]int{}, lines: make(chan string, 1000)}
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
				return secretToken, nil
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
	for _, f := range change {
		f(b.Reporter)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		b.Run(ctx)
	}()
	b.stop = func() {
		cancel()
		<-done
	}
	t.Cleanup(b.stop)
	return b
}

const secretToken = "s3cret"

type lockedWriter struct{ *bench }

func (w lockedWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lines <- string(p)
	return w.log.Write(p)
}

// await waits for a line of the log that contains a text.
func (b *bench) await(t *testing.T, text string) string {
	t.Helper()
	for failsafe := time.After(time.Minute); ; {
		select {
		case line := <-b.lines:
			if strings.Contains(line, text) {
				return line
			}
		case <-failsafe:
			t.Fatalf("no line of the log has %q: %s", text, b.logged())
		}
	}
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
	if s := b.Status(); s.Delivered.IsZero() || s.Problem != "" || s.Failures != 0 {
		t.Errorf("status after a delivery: %+v", s)
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
	s, later := newReceiver(t), newReceiver(t)
	b := newBench(t, Settings{URL: "http://127.0.0.1:1", Every: time.Hour})
	b.set(Settings{URL: s.URL, Token: "absent", Every: time.Millisecond}, false)
	b.await(t, "read token: no such secret")
	b.set(Settings{URL: "http://127.0.0.1:1", Every: time.Millisecond}, false) // logged although the series goes on
	b.await(t, "connection refused")
	b.set(Settings{URL: s.URL, Every: time.Millisecond}, false)
	<-s.posts
	b.await(t, "reports delivered again")
	b.set(Settings{}, true)
	b.set(Settings{URL: later.URL, Every: time.Millisecond}, false)
	<-later.posts
	b.set(Settings{URL: s.URL, Token: "broken", Every: time.Millisecond}, false)
	b.await(t, "the secret broken cannot be a bearer token")
	if text := b.logged(); strings.Contains(text, `a\nb`) {
		t.Errorf("the log has a secret: %s", text)
	}
}

// TestReporter_off requires that no report is made while reports are off, and that they go on later.
func TestReporter_off(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		on := Settings{URL: "http://127.0.0.1:1", Every: time.Minute}
		b := newBench(t, on, func(r *Reporter) { r.client.Transport = accepting{} })
		made := func() int64 { // in the next hour
			b.mu.Lock()
			before := b.made
			b.mu.Unlock()
			time.Sleep(time.Hour)
			synctest.Wait()
			b.mu.Lock()
			defer b.mu.Unlock()
			return b.made - before
		}
		if n := made(); n < 50 {
			t.Errorf("%d reports in an hour", n)
		}
		b.set(Settings{URL: "http://127.0.0.1:2", Every: time.Minute}, true)
		if n := made(); n > 0 {
			t.Errorf("%d reports while they are off", n)
		}
		b.Changed()
		if n := made(); n > 0 {
			t.Errorf("%d reports after a change while they are off", n)
		}
		b.set(on, false)
		if n := made(); n < 50 {
			t.Errorf("%d reports in an hour once they are on again", n)
		}
	})
}

// TestReporter_hostileReceiver sends reports to servers that answer with nonsense, too much, too slowly
// or never. Each is a failure or a delivery like others, the log has no content of the answer, and the
// reporter can be stopped at any moment.
func TestReporter_hostileReceiver(t *testing.T) {
	raw := func(w http.ResponseWriter, answer string) {
		c, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close()
		_, _ = io.WriteString(c, answer)
	}
	stall := func(r *http.Request) { <-r.Context().Done() }
	for name, row := range map[string]struct {
		answer  http.HandlerFunc
		outcome string
		problem string
		timeout time.Duration
	}{
		"token in a malformed answer": {func(w http.ResponseWriter, _ *http.Request) {
			raw(w, "HTTP/1.1 "+secretToken+"\r\n\r\n")
		}, observe.ReportFailed, "the server sent no valid response", time.Minute},
		"token in another protocol": {func(w http.ResponseWriter, _ *http.Request) {
			raw(w, "SSH-2.0 Bearer "+secretToken+"\r\n\r\n")
		}, observe.ReportFailed, "the server sent no valid response", time.Minute},
		"token in the status": {func(w http.ResponseWriter, _ *http.Request) {
			raw(w, "HTTP/1.1 599 "+secretToken+"\r\n\r\n")
		}, observe.ReportFailed, "the server answered 599", time.Minute},
		"large header": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Large", strings.Repeat(secretToken, 1<<20))
		}, observe.ReportFailed, "the server sent no valid response", time.Minute},
		"half a header": {func(w http.ResponseWriter, _ *http.Request) {
			raw(w, "HTTP/1.1 200 OK\r\nX-A: b\r\n")
		}, observe.ReportFailed, "the server closed the connection", time.Minute},
		"informational answers": {func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				w.Header().Set("Link", strings.Repeat("x", 1000))
				w.WriteHeader(http.StatusEarlyHints)
			}
		}, observe.ReportFailed, "the server sent no valid response", time.Minute},
		"no answer": {func(_ http.ResponseWriter, r *http.Request) { stall(r) }, observe.ReportFailed, "the server did not answer in time", time.Second / 10},
		"endless body": {func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				if _, err := io.WriteString(w, strings.Repeat("x", 4096)); err != nil {
					return
				}
			}
		}, observe.ReportDelivered, "", time.Minute},
		"stalled body": {func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, "x")
			_ = http.NewResponseController(w).Flush()
			stall(r)
		}, observe.ReportDelivered, "", 5 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			asked := make(chan struct{}, 1000)
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				asked <- struct{}{}
				row.answer(w, r)
			}))
			t.Cleanup(s.Close)
			b := newBench(t, Settings{URL: s.URL, Token: "token", Every: time.Millisecond}, func(r *Reporter) { r.timeout = row.timeout })
			<-asked
			<-asked  // so the first attempt has ended
			b.stop() // and ends this one
			if b.counts[row.outcome] < 1 || len(b.counts) != 1 {
				t.Errorf("counted %v", b.counts)
			}
			if text := b.logged(); strings.Contains(text, secretToken) || len(text) > 500 || !strings.Contains(text, row.problem) {
				t.Errorf("log: %.500s", text)
			}
		})
	}
}

// TestReporter_frequentChanges changes the state all the time. Reports follow, and not more than one in
// each interval.
func TestReporter_frequentChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var at []time.Time
		r := New(Options{
			Settings: func() (Settings, bool) { return Settings{URL: "http://127.0.0.1:1", Every: 24 * time.Hour}, true },
			Report:   func() Report { return Report{} },
			Count:    func(string) { at = append(at, time.Now()) },
			Logger:   slog.New(slog.DiscardHandler),
		})
		r.client.Transport = accepting{}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			r.Run(ctx)
		}()
		for range 3600 {
			time.Sleep(time.Second)
			r.Changed()
		}
		cancel()
		<-done
		for i := range at[1:] {
			if d := at[i+1].Sub(at[i]); d < soon {
				t.Errorf("two reports within %s", d)
			}
		}
		if len(at) < 150 {
			t.Errorf("%d reports in an hour", len(at))
		}
	})
}

// accepting accepts each request.
type accepting struct{}

func (accepting) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusNoContent, Body: http.NoBody, Request: r}, nil
}

// TestReporter_stopDuringAttempt requires that Run ends at once while a server does not answer.
func TestReporter_stopDuringAttempt(t *testing.T) {
	asked, ended := make(chan struct{}), make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		asked <- struct{}{}
		<-ended
	}))
	t.Cleanup(s.Close)
	t.Cleanup(func() { close(ended) })
	b := newBench(t, Settings{URL: s.URL, Every: time.Millisecond}, func(r *Reporter) { r.timeout = 24 * time.Hour })
	<-asked
	b.stop()
	if text := b.logged(); text != "" || len(b.counts) > 0 {
		t.Errorf("log: %s, counts %v", text, b.counts)
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

// TestID requires ids that servers keep across versions, as receivers know them by it.
func TestID(t *testing.T) {
	for _, row := range []struct{ given, machine, host, want string }{
		{"kiosk-1", "m", "h", "kiosk-1"},
		{"", "0123456789abcdef0123456789abcdef", "h", "b8ed3c0e2ba7c45ad47b6079fdcef67d"},
		{"", "", "kiosk-1.example.com", "kiosk-1.example.com"},
		{"", "uninitialized\n", "kiosk-1", "kiosk-1"},
		{"", "", "", "d52ff56c7f424c4fb1daef7c48bdd797"},
	} {
		if got := ID(row.given, row.machine, row.host); got != row.want {
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
	for i := range list {
		list[i].Range.File = strings.Repeat("\xff<\x00\"\u2028", 500)
	}
	problems, _ = ProblemsOf(list)
	text, err = json.Marshal(Report{Problems: problems, Bundle: &Bundle{Problems: problems}})
	if err != nil || len(text) > 120<<10 {
		t.Errorf("a report has %d bytes, %v", len(text), err)
	}
	if problems, omitted := ProblemsOf(nil); problems == nil || omitted != 0 {
		t.Error("no problems are null")
	}
}
