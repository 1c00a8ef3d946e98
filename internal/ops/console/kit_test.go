package console

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/net/html"

	"github.com/mcpd/mcpd/internal/ops/control"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fake is a backend with fixed answers. An answer is a value, an error, or a function of the
// parameters; a stream is a function that gets the server end.
type fake struct {
	mu      sync.Mutex
	answers map[control.Action]any
	streams map[control.Action]func(*pipe)
	asked   []control.Request
	encoded sync.Map // the fixed answers as JSON, by action
}

// encode returns an answer as JSON.
func (f *fake) encode(action control.Action, answer any) ([]byte, error) {
	if known, ok := f.encoded.Load(action); ok {
		return known.([]byte), nil
	}
	encoded, err := json.Marshal(answer)
	if _, changes := f.answers[action].(func(json.RawMessage) any); !changes {
		f.encoded.Store(action, encoded)
	}
	return encoded, err
}

// Do returns the fixed answer of an action. Those of verbs have two parts.
func (f *fake) Do(_ context.Context, r control.Request, into any) error {
	f.mu.Lock()
	f.asked = append(f.asked, r)
	answer, known := f.answers[r.Action]
	f.mu.Unlock()
	if !known {
		return fmt.Errorf("no answer to %s", r.Action)
	}
	if of, ok := answer.(func(json.RawMessage) any); ok {
		answer = of(r.Params)
	}
	if err, ok := answer.(error); ok {
		return err
	}
	encoded, err := f.encode(r.Action, answer)
	if err != nil {
		return err
	}
	switch r.Action {
	case control.Status, control.Tokens, control.DropTokens, control.Reload:
		diagnostics, _ := f.answers["diagnostics"].(string)
		if encoded, err = json.Marshal(said{encoded, diagnostics}); err != nil {
			return err
		}
	}
	return json.Unmarshal(encoded, into)
}

// Open starts a stream.
func (f *fake) Open(_ context.Context, r control.Request) (Stream, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked = append(f.asked, r)
	serve, known := f.streams[r.Action]
	if !known {
		return nil, fmt.Errorf("no stream of %s", r.Action)
	}
	p := &pipe{lines: make(chan any, 10_000), answers: make(chan control.TryAnswer, 10), closed: make(chan struct{})}
	serve(p)
	return p, nil
}

// requests returns the requests with an action.
func (f *fake) requests(action control.Action) (found []control.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range f.asked {
		if r.Action == action {
			found = append(found, r)
		}
	}
	return found
}

// pipe is a stream in memory. Its server sends lines and receives answers.
type pipe struct {
	lines   chan any
	answers chan control.TryAnswer
	once    sync.Once
	closed  chan struct{}
}

func (p *pipe) Send(value any) error {
	p.answers <- value.(control.TryAnswer)
	return nil
}

func (p *pipe) Receive(into any) error {
	select {
	case line, more := <-p.lines:
		if !more {
			return io.EOF
		}
		encoded, err := json.Marshal(line)
		return errors.Join(err, json.Unmarshal(encoded, into))
	case <-p.closed:
		return errors.New("closed")
	}
}

func (p *pipe) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

// newFake returns a healthy server with a tool.
func newFake() *fake {
	return &fake{
		answers: map[control.Action]any{
			control.Status:      map[string]any{"status": "healthy", "revision": "0123456789abcdef", "listeners": []string{"http://127.0.0.1:8080/mcp"}, "problems": []any{}, "upstreams": []any{}},
			control.Catalog:     control.CatalogResult{Items: []control.ItemSummary{{ItemName: control.ItemName{Kind: "tool", Address: "greet"}, Summary: "Greets.", Origin: "file"}}},
			control.Item:        itemWith(`{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}`),
			control.Matrix:      control.MatrixResult{},
			control.Explain:     control.ExplainResult{Verdict: "allowed"},
			control.Audit:       control.AuditResult{},
			control.Pins:        []control.Pin{},
			control.Keys:        []control.Key{},
			control.Tasks:       []control.Task{},
			control.Tokens:      control.TokensResult{},
			control.Limits:      []control.LimitUse{},
			control.PolicyFiles: control.PolicyFilesResult{Revision: "r1", Files: []string{"mcpd.hcl", "tools.d/refund.hcl"}, Text: "policy \"p\" {}\n"},
			control.Replay:      control.ReplayResult{Counts: &control.ReplayCounts{}},
		},
		streams: map[control.Action]func(*pipe){
			control.Calls: func(*pipe) {},
			control.Try: func(p *pipe) {
				p.lines <- control.TryEvent{Result: &control.TryResult{CallID: "c1", Value: json.RawMessage(`"Hello"`)}}
			},
		},
	}
}

// itemWith returns a tool with an input schema.
func itemWith(schema string) control.ItemResult {
	return control.ItemResult{ItemSummary: control.ItemSummary{ItemName: control.ItemName{Kind: "tool", Address: "greet"}, Origin: "file"}, Input: json.RawMessage(schema)}
}

// browser is a browser with a session.
type browser struct {
	t       *testing.T
	console *Console
	origin  string
	base    string // the origin, and the secret path of the console
	client  *http.Client
	token   string // the path of the first request
	csrf    string
}

// browse serves a console over a backend, and signs in.
func browse(t *testing.T, b Backend, set ...func(*Options)) *browser {
	t.Helper()
	s := httptest.NewUnstartedServer(nil)
	host := s.Listener.Addr().String()
	o := Options{Hosts: []string{host}, Attach: []string{"mcpd", "attach"}}
	for _, f := range set {
		f(&o)
	}
	c, err := New(b, o)
	if err != nil {
		t.Fatal(err)
	}
	s.Config.Handler = c
	s.Start()
	t.Cleanup(func() {
		c.Close()
		s.CloseClientConnections()
		s.Close()
	})
	jar, _ := cookiejar.New(nil)
	secret := strings.TrimPrefix(c.base, o.Base)
	browser := &browser{t: t, console: c, origin: s.URL, base: s.URL + secret, client: &http.Client{Jar: jar, Timeout: time.Minute}}
	browser.token = strings.TrimPrefix(c.NewToken(), secret)
	t.Cleanup(browser.client.CloseIdleConnections)
	return browser
}

// signIn uses the token.
func (b *browser) signIn() *browser {
	b.t.Helper()
	if status, _ := b.get(b.token); status != http.StatusOK {
		b.t.Fatalf("sign in: status %d", status)
	}
	b.csrf = b.console.session.csrf
	return b
}

// get returns the status and the body of a page.
func (b *browser) get(path string) (int, string) {
	b.t.Helper()
	response, err := b.client.Get(b.base + path)
	if err != nil {
		b.t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	return response.StatusCode, b.withoutBase(string(body))
}

// withoutBase removes the secret path of the console from the addresses of a page.
func (b *browser) withoutBase(page string) string {
	return strings.ReplaceAll(page, `="`+strings.TrimPrefix(b.base, b.origin)+`/`, `="/`)
}

// post posts a form as a page does, and follows redirects. It returns the path where it ends.
func (b *browser) post(path string, form url.Values) (status int, body, at string) {
	b.t.Helper()
	if form == nil {
		form = url.Values{}
	}
	form.Set("csrf", b.csrf)
	r, err := http.NewRequestWithContext(b.t.Context(), http.MethodPost, b.base+path, strings.NewReader(form.Encode()))
	if err != nil {
		b.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Origin", b.origin)
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	response, err := b.client.Do(r)
	if err != nil {
		b.t.Fatal(err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	return response.StatusCode, b.withoutBase(string(content)), strings.TrimPrefix(response.Request.URL.RequestURI(), strings.TrimPrefix(b.base, b.origin))
}

// ended waits for a call to end, and returns its page.
func (b *browser) ended(path string) string {
	b.t.Helper()
	status, events := b.get(path + "/events")
	if status != http.StatusOK || !strings.Contains(events, "event: done") {
		b.t.Fatalf("events of %s: status %d, %q", path, status, events)
	}
	_, page := b.get(path)
	return page
}

// pageText returns the text of a page without markup.
func pageText(t *testing.T, page string) string {
	t.Helper()
	doc, err := html.Parse(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for n := range doc.Descendants() {
		if n.Type == html.TextNode {
			b.WriteString(n.Data)
		}
	}
	return b.String()
}

// mustContain fails the test if a page lacks one of the texts.
func mustContain(t *testing.T, page string, texts ...string) {
	t.Helper()
	shown := pageText(t, page)
	for _, text := range texts {
		if !strings.Contains(shown, text) {
			t.Errorf("the page lacks %q:\n%s", text, shown)
		}
	}
}

// waitForCalls waits until the feed has n calls.
func waitForCalls(f *feed, n int) {
	for {
		calls, _, changed := f.after(0)
		if len(calls) >= n {
			return
		}
		<-changed
	}
}

// catalogOf returns a catalog of n tools.
func catalogOf(n int) control.CatalogResult {
	var row control.CatalogResult
	for i := range n {
		row.Items = append(row.Items, control.ItemSummary{ItemName: control.ItemName{Kind: "tool", Address: fmt.Sprintf("tool_%d", i)}, Summary: "It has a number.", Origin: "file", Place: &control.Place{File: "tools.d/t.hcl", Line: i + 1}})
	}
	return row
}

// liveEvents reads a stream of events.
type liveEvents struct {
	t    *testing.T
	body interface{ Read([]byte) (int, error) }
	got  strings.Builder
}

func (b *browser) live(path string) *liveEvents {
	b.t.Helper()
	response, err := b.client.Get(b.base + path)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = response.Body.Close() })
	return &liveEvents{t: b.t, body: response.Body}
}

// until reads until the events have a text, and returns them.
func (l *liveEvents) until(text string) string {
	l.t.Helper()
	buffer := make([]byte, 4096)
	for !strings.Contains(l.got.String(), text) {
		n, err := l.body.Read(buffer)
		l.got.Write(buffer[:n])
		if err != nil {
			l.t.Fatalf("%v after %q", err, l.got.String())
		}
	}
	return l.got.String()
}
