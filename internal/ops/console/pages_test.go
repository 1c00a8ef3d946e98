package console

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/ops/control"
)

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

func TestOverview(t *testing.T) {
	t.Parallel()
	backend := newFake()
	backend.answers["diagnostics"] = "tools.d/a.hcl:3:1: error: unknown block"
	backend.answers[control.Status] = map[string]any{
		"status": "the files have errors", "revision": "0123456789abcdef", "problems": []map[string]string{{"severity": "error"}, {"severity": "warning"}}, "listeners": []string{"http://127.0.0.1:8080/mcp"},
		"upstreams": []map[string]any{{"name": "docs", "error": "connection refused"}},
	}
	now := time.Now()
	backend.streams[control.Calls] = func(p *pipe) {
		for i, outcome := range []string{"ok", "ok", "POLICY_DENIED", "TIMEOUT"} {
			p.lines <- control.Call{CallID: fmt.Sprint(i), Time: now, Outcome: outcome, DeniedBy: "nightly", DurationMS: float64(i) * 10}
		}
	}
	b := browse(t, backend).signIn()
	b.get("/") // starts the stream of calls
	waitForCalls(b.console.feed, 4)
	_, page := b.get("/")
	mustContain(t, page, "1 error in the files", "1 warning", "unknown block", "docs", "connection refused", "succeeded2", "refused1", "failed1", "nightly")
	s := b.console.feed.summary()
	if s.OK != 2 || s.P50 != 20 || s.P95 != 30 || len(s.series.Time) != seriesBuckets {
		t.Errorf("summary %+v", s)
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

func TestItems(t *testing.T) {
	t.Parallel()
	backend := newFake()
	backend.answers[control.Catalog] = catalogOf(250)
	b := browse(t, backend).signIn()
	_, first := b.get("/items")
	mustContain(t, first, "1 to 100 of 250 items", "tool_0", "Next")
	_, last := b.get("/items?page=2")
	mustContain(t, last, "201 to 250 of 250 items", "tool_249", "Previous")
	_, far := b.get("/items?page=99")
	mustContain(t, far, "201 to 250")
	_, found := b.get("/items?q=TOOL_17+number")
	mustContain(t, found, "1 to 11 of 11 items", "(250 in all)")
	_, none := b.get("/items?kind=prompt")
	mustContain(t, none, "No item matches.")
}

// catalogOf returns a catalog of n tools.
func catalogOf(n int) control.CatalogResult {
	var row control.CatalogResult
	for i := range n {
		row.Items = append(row.Items, control.ItemSummary{ItemName: control.ItemName{Kind: "tool", Address: fmt.Sprintf("tool_%d", i)}, Summary: "It has a number.", Origin: "file", Place: &control.Place{File: "tools.d/t.hcl", Line: i + 1}})
	}
	return row
}

func TestItem(t *testing.T) {
	t.Parallel()
	backend := newFake()
	item := itemWith(`{"type":"object","properties":{"name":{"type":"string","description":"who","maxLength":20},"color":{"enum":["red","green"]}},"required":["name"]}`)
	item.Source, item.Grants, item.Limits = "tool \"greet\" {}", []string{"http crm"}, []string{"timeout 5s"}
	item.Policies = []control.Policy{{Name: "office_hours", Place: &control.Place{File: "mcpd.hcl", Line: 7}}}
	item.Place = &control.Place{File: "tools.d/greet.hcl", Line: 3}
	backend.answers[control.Item] = item
	b := browse(t, backend).signIn()
	_, page := b.get("/item?kind=tool&address=greet")
	mustContain(t, page, "tools.d/greet.hcl:3", "who", "at most 20 characters", "one of red, green", "office_hours", "mcpd.hcl:7", "http crm", "timeout 5s", `tool "greet" {}`, `"command": "mcpd"`, "http://127.0.0.1:8080/mcp/execute")
}

func TestTry(t *testing.T) {
	t.Parallel()
	backend := newFake()
	b := browse(t, backend).signIn()
	status, page, at := b.post("/item/try?kind=tool&address=greet", url.Values{"arg/name": {"Ada"}, "as": {"other"}, "as_id": {"ci"}, "as_kind": {"key"}, "as_scopes": {"a b"}, "as_agent": {"bot"}})
	if status != http.StatusOK || !strings.HasPrefix(at, "/runs/") {
		t.Fatalf("status %d at %s: %s", status, at, page)
	}
	id, _, _ := strings.Cut(at, "#")
	mustContain(t, b.ended(id), "key ci", "Hello", "call c1", "Ada")
	requests := backend.requests(control.Try)
	if len(requests) != 1 {
		t.Fatalf("%d calls", len(requests))
	}
	var got control.TryCall
	if err := requests[0].DecodeParams(&got); err != nil {
		t.Fatal(err)
	}
	want := control.TryCall{
		ItemName: control.ItemName{Kind: "tool", Address: "greet"}, Arguments: json.RawMessage(`{"name":"Ada"}`),
		As: control.As{Principal: &identity.Principal{ID: "ci", Kind: identity.KindKey, Scopes: []string{"a", "b"}, Groups: []string{}, Claims: map[string]any{}}, Agent: &control.Agent{AgentID: "bot"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the call (-want +got):\n%s", diff)
	}
}

// A recorded call of a tool from a file has its test as a text to copy, and as a file whose name cannot
// change the header.
func TestTry_record(t *testing.T) {
	t.Parallel()
	const block = "test \"recorded call\" {\n  tool = \"<b>\"\n}\n"
	backend := newFake()
	backend.streams[control.Try] = func(p *pipe) {
		p.lines <- control.TryEvent{Result: &control.TryResult{CallID: "c1", Value: json.RawMessage("1"), Test: block, TestNotes: []string{"mind <i>this</i>"}}}
	}
	b := browse(t, backend).signIn()
	if _, page := b.get("/item?kind=tool&address=greet"); !strings.Contains(page, `name="record"`) {
		t.Error("the form has no check box")
	}
	_, _, at := b.post("/item/try?kind=tool&address=greet", url.Values{"arg/name": {"Ada"}, "record": {"yes"}})
	id, _, _ := strings.Cut(at, "#")
	page := b.ended(id)
	mustContain(t, page, block, "mind <i>this</i>", "Download greet_test.hcl")
	for _, markup := range []string{`value="yes" checked`, `href="` + id + `/test"`} {
		if !strings.Contains(page, markup) {
			t.Errorf("the page lacks %s", markup)
		}
	}
	if made := backend.requests(control.Try); len(made) != 1 || !strings.Contains(string(made[0].Params), `"record":true`) {
		t.Errorf("calls %+v", made)
	}
	response, err := b.client.Get(b.base + id + "/test")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil || string(text) != block {
		t.Errorf("got %s, %v", text, err)
	}
	for name, want := range map[string]string{"Content-Type": "text/plain; charset=utf-8", "Content-Disposition": `attachment; filename="greet_test.hcl"`, "X-Content-Type-Options": "nosniff"} {
		if got := response.Header.Get(name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	for name, want := range map[string]string{"a.b": "a_b_test.hcl", "a\"\r\nX: y": "a___X__y_test.hcl", "ü/../": "______test.hcl", strings.Repeat("x", 100): strings.Repeat("x", 64) + "_test.hcl"} {
		if got := testFile(name); got != want {
			t.Errorf("the file for %q is %q, want %q", name, got, want)
		}
	}
}

// An argument of a prompt with a completion has a list of its values, and is a plain input otherwise.
func TestComplete(t *testing.T) {
	t.Parallel()
	backend := newFake()
	backend.answers[control.Item] = control.ItemResult{ItemSummary: control.ItemSummary{ItemName: control.ItemName{Kind: "prompt", Address: "plan"}, Origin: "file"},
		Arguments: []control.Argument{{Name: "date"}, {Name: "a/b", Completes: true}}}
	backend.answers[control.Complete] = control.CompleteResult{Values: []string{`sh"ort<b>`, "invisible\u202e", "thorough"}}
	b := browse(t, backend).signIn()
	_, page := b.get("/item?kind=prompt&address=plan")
	if strings.Count(page, "<datalist") != 1 || strings.Count(page, "/item/complete?") != 1 {
		t.Errorf("the form is\n%s", page)
	}
	const path = "/item/complete?kind=prompt&address=plan&argument=a%2Fb"
	form := url.Values{"arg/a~1b": {"s"}, "arg/date": {"Monday"}}
	if _, options, _ := b.post(path, form); options != `<option value="sh&#34;ort&lt;b&gt;"></option><option value="thorough"></option>` {
		t.Errorf("the options are %s", options)
	}
	if made := backend.requests(control.Complete); len(made) != 1 || string(made[0].Params) != `{"kind":"prompt","address":"plan","argument":"a/b","value":"s","arguments":{"date":"Monday"}}` {
		t.Errorf("requests %+v", made)
	}
	backend.answers[control.Complete] = errors.New("denied")
	if status, options, _ := b.post(path, form); status != http.StatusOK || options != "" {
		t.Errorf("after an error: status %d, %s", status, options)
	}
}

// Other items cannot be recorded, and neither can calls in the console of the listener. A call without a
// test has no file.
func TestTry_withoutRecord(t *testing.T) {
	t.Parallel()
	backend := newFake()
	item := itemWith(`{"type":"object"}`)
	item.Origin = "crm"
	backend.answers[control.Item] = item
	b := browse(t, backend).signIn()
	if _, page := b.get("/item?kind=tool&address=greet"); strings.Contains(page, `name="record"`) {
		t.Error("a tool of an upstream server can be recorded")
	}
	_, _, at := b.post("/item/try?kind=tool&address=greet", nil)
	id, _, _ := strings.Cut(at, "#")
	b.ended(id)
	if status, page := b.get(id + "/test"); status != http.StatusNotFound || !strings.Contains(page, "This call has no test") {
		t.Errorf("status %d: %s", status, pageText(t, page))
	}
	listener, err := New(newFake(), Options{Base: "/console"})
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	w := httptest.NewRecorder()
	listener.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/console/item?kind=tool&address=greet", nil))
	if page := w.Body.String(); w.Code != http.StatusOK || strings.Contains(page, `name="record"`) {
		t.Errorf("status %d: %s", w.Code, pageText(t, page))
	}
}

// A template is read by a URI, on the page of the template.
func TestTry_template(t *testing.T) {
	t.Parallel()
	backend := newFake()
	backend.answers[control.Item] = func(params json.RawMessage) any {
		if string(params) != `{"kind":"template","address":"notes://{id}"}` {
			return fmt.Errorf("no item %s", params)
		}
		return control.ItemResult{ItemSummary: control.ItemSummary{ItemName: control.ItemName{Kind: "template", Address: "notes://{id}"}}, Arguments: []control.Argument{{Name: "id"}}}
	}
	b := browse(t, backend).signIn()
	_, _, at := b.post("/item/try?kind=template&address=notes%3A%2F%2F%7Bid%7D", url.Values{"uri": {"notes://7"}})
	id, _, _ := strings.Cut(at, "#")
	if page := b.ended(id); !strings.Contains(page, `value="notes://7"`) {
		t.Errorf("the page lacks the URI:\n%s", pageText(t, page))
	}
	if made := backend.requests(control.Try); len(made) != 1 || string(made[0].Params) != `{"kind":"resource","address":"notes://7"}` {
		t.Errorf("calls %+v", made)
	}
}

func TestTry_formsThatMakeNoCall(t *testing.T) {
	t.Parallel()
	backend := newFake()
	backend.answers[control.Item] = itemWith(`{"type":"object","properties":{"n":{"type":"integer"},"l":{"type":"array","items":{"type":"string"}}}}`)
	b := browse(t, backend).signIn()
	rows := []struct {
		name string
		form url.Values
		want string // in the markup
	}{
		{"wrong number", url.Values{"arg/n": {"many"}}, "This text is not a valid value."},
		{"wrong JSON", url.Values{"mode": {"json"}, "json": {"[1]"}}, "This is not a JSON object."},
		{"no principal", url.Values{"as": {"other"}, "as_kind": {"key"}}, "Name the principal and its kind."},
		{"added entry", url.Values{"len/l": {"1"}, "arg/l/0": {"x"}, "edit": {"add/l"}}, `name="arg/l/1"`},
		{"removed entry", url.Values{"len/l": {"2"}, "arg/l/0": {"gone"}, "arg/l/1": {"kept"}, "edit": {"remove/l/0"}}, "kept"},
		{"as JSON", url.Values{"arg/n": {"7"}, "edit": {"json"}}, "&#34;n&#34;: 7"},
		{"as a form", url.Values{"mode": {"json"}, "json": {`{"n":8}`}, "edit": {"form"}}, `value="8"`},
	}
	for _, row := range rows {
		status, page, at := b.post("/item/try?kind=tool&address=greet", row.form)
		if status != http.StatusOK || !strings.HasPrefix(at, "/item/try") || !strings.Contains(page, row.want) || strings.Contains(page, "gone") {
			t.Errorf("%s: status %d at %s without %q:\n%s", row.name, status, at, row.want, pageText(t, page))
		}
	}
	if n := len(backend.requests(control.Try)); n != 0 {
		t.Errorf("%d calls were made", n)
	}
}

func TestTry_asks(t *testing.T) {
	t.Parallel()
	backend := newFake()
	answers := make(chan control.TryAnswer, 1)
	backend.streams[control.Try] = func(p *pipe) {
		p.lines <- control.TryEvent{Ask: []control.TryQuestion{
			{Key: "approval", Method: "elicitation/create", Params: json.RawMessage(`{"message":"Erase all?","requestedSchema":{"type":"object","properties":{"sure":{"type":"boolean"}}}}`)},
			{Key: "model", Method: "sampling/createMessage", Params: json.RawMessage(`{}`)},
			{Key: "dirs", Method: "roots/list", Params: json.RawMessage(`{}`)},
		}}
		go func() {
			answers <- <-p.answers
			p.lines <- control.TryEvent{Result: &control.TryResult{CallID: "c1", Value: json.RawMessage(`true`)}}
		}()
	}
	b := browse(t, backend).signIn()
	_, _, at := b.post("/item/try?kind=tool&address=greet", nil)
	id, _, _ := strings.Cut(at, "#")
	run := b.console.runs[0]
	for run.view("").Ask == nil {
		run.mu.Lock()
		changed, has := run.changed, run.ask != nil
		run.mu.Unlock()
		if !has {
			<-changed
		}
	}
	_, page := b.get(id)
	mustContain(t, page, "Erase all?", "Waiting for an answer.")
	b.post(id+"/answer", url.Values{"asked": {"7"}, "action": {"accept"}}) // another round: ignored
	b.post(id+"/answer", url.Values{"asked": {"1"}, "action": {"accept"}, "q/0/arg/sure": {"0"}, "q/1/text": {"yes"}, "q/2/text": {"file:///a\nfile:///b"}})
	got := <-answers
	want := control.TryAnswer{Responses: map[string]json.RawMessage{
		"approval": json.RawMessage(`{"action":"accept","content":{"sure":true}}`),
		"model":    json.RawMessage(`{"content":{"text":"yes","type":"text"},"model":"mcpd-console","role":"assistant","stopReason":"endTurn"}`),
		"dirs":     json.RawMessage(`{"roots":[{"uri":"file:///a"},{"uri":"file:///b"}]}`),
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the answer (-want +got):\n%s", diff)
	}
	mustContain(t, b.ended(id), "true")
}

func TestTry_bounds(t *testing.T) {
	t.Parallel()
	backend := newFake()
	backend.streams[control.Try] = func(*pipe) {} // never ends
	b := browse(t, backend).signIn()
	var last string
	for range maxActive {
		_, _, at := b.post("/item/try?kind=tool&address=greet", nil)
		last, _, _ = strings.Cut(at, "#")
	}
	status, page, _ := b.post("/item/try?kind=tool&address=greet", nil)
	if status != http.StatusServiceUnavailable {
		t.Errorf("status %d", status)
	}
	mustContain(t, page, "8 calls of the console run")
	b.post(last+"/cancel", nil)
	mustContain(t, b.ended(last), "the call was cancelled")
	if status, page, _ := b.post("/item/try?kind=tool&address=greet", nil); status != http.StatusOK {
		t.Errorf("after a cancellation: status %d: %s", status, page)
	}
}

func TestTry_keepsTheLastCalls(t *testing.T) {
	t.Parallel()
	b := browse(t, newFake()).signIn()
	var ids []string
	for range maxRuns + 1 {
		_, _, at := b.post("/item/try?kind=tool&address=greet", nil)
		id, _, _ := strings.Cut(at, "#")
		ids = append(ids, id)
		b.ended(id)
	}
	if status, _ := b.get(ids[0]); status != http.StatusNotFound {
		t.Errorf("the oldest: status %d", status)
	}
	if status, _ := b.get(ids[1]); status != http.StatusOK {
		t.Errorf("the second: status %d", status)
	}
}

func TestResult(t *testing.T) {
	t.Parallel()
	const png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
	rows := []struct {
		name, content string
		check         func(block) bool
	}{
		{"text", `{"type":"text","text":"hi"}`, func(b block) bool { return b.Text == "hi" && !b.JSON }},
		{"text with JSON", `{"type":"text","text":"{\"a\":1}"}`, func(b block) bool { return b.JSON && strings.Contains(b.Text, "\n") }},
		{"image", `{"type":"image","mimeType":"image/png","data":"` + png + `"}`, func(b block) bool { return strings.HasPrefix(string(b.Image), "data:image/png;base64,") }},
		{"image of another declared type", `{"type":"image","mimeType":"text/html","data":"` + png + `"}`, func(b block) bool { return strings.HasPrefix(string(b.Image), "data:image/png;base64,") }},
		{"SVG", `{"type":"image","mimeType":"image/svg+xml","data":"PHN2ZyB4bWxucz0iaHR0cDovL3d3dy53My5vcmcvMjAwMC9zdmciLz4="}`, func(b block) bool { return b.Image == "" && strings.Contains(b.Text, "<svg") }},
		{"HTML as an image", `{"type":"image","mimeType":"image/png","data":"PHNjcmlwdD4="}`, func(b block) bool { return b.Image == "" && b.Text == "<script>" }},
		{"sound", `{"type":"audio","mimeType":"audio/wav","data":"UklGRgAAAABXQVZF"}`, func(b block) bool { return strings.HasPrefix(string(b.Sound), "data:audio/wave;base64,") }},
		{"no base64", `{"type":"image","data":"%"}`, func(b block) bool { return b.Note != "" && b.Image == "" }},
		{"large image", `{"type":"image","data":"` + strings.Repeat("A", maxMedia*2) + `"}`, func(b block) bool { return b.Note != "" && b.Image == "" }},
		{"resource", `{"type":"resource","resource":{"uri":"a://b","text":"inner"}}`, func(b block) bool { return b.Text == "inner" && strings.Contains(b.Label, "a://b") }},
		{"link", `{"type":"resource_link","uri":"javascript:x","name":"n"}`, func(b block) bool { return strings.Contains(b.Text, "javascript:x") }},
		{"unknown", `{"type":"new","x":1}`, func(b block) bool { return b.JSON && strings.Contains(b.Text, `"x": 1`) }},
		{"no object", `7`, func(b block) bool { return b.Text == "7" }},
	}
	for _, row := range rows {
		if b := blockOf("", json.RawMessage(row.content)); !row.check(b) {
			t.Errorf("%s: %.300v", row.name, b)
		}
	}
	many := newResult(control.TryResult{Content: json.RawMessage(`[` + strings.TrimSuffix(strings.Repeat(`{"type":"text","text":"x"},`, maxBlocks+3), ",") + `]`)})
	if len(many.Blocks) != maxBlocks || many.More != 3 {
		t.Errorf("%d blocks and %d more", len(many.Blocks), many.More)
	}
	reply := newResult(control.TryResult{Reply: json.RawMessage(`{"contents":[{"uri":"a://b","blob":"` + png + `"}],"messages":[{"role":"user","content":{"type":"text","text":"hi"}}]}`)})
	if len(reply.Blocks) != 2 || reply.Blocks[0].Image == "" || reply.Blocks[1].Label != "user text" {
		t.Errorf("reply: %+v", reply.Blocks)
	}
}

func TestCalls(t *testing.T) {
	t.Parallel()
	backend := newFake()
	var server *pipe
	backend.streams[control.Calls] = func(p *pipe) {
		server = p
		p.lines <- control.Call{CallID: "one", Name: "greet", Principal: "ada", Outcome: "ok"}
		p.lines <- control.Call{CallID: "two", RootID: "one", ParentID: "one", Depth: 1, Name: "inner", Principal: "ada", Outcome: "POLICY_DENIED", DeniedBy: "office_hours", TraceID: "trace-7", AuthKind: "key"}
	}
	backend.answers[control.Audit] = control.AuditResult{Calls: []control.Call{{Seq: 41, CallID: "old", Name: "greet", Outcome: "ok"}}, More: true}
	b := browse(t, backend).signIn()
	b.get("/calls")
	waitForCalls(b.console.feed, 2)
	_, page := b.get("/calls")
	mustContain(t, page, "greet", "inner", "by office_hours")
	_, page = b.get("/calls?outcome=ok")
	if mustContain(t, page, "greet"); strings.Contains(pageText(t, page), "inner") {
		t.Error("the filter lets another outcome pass")
	}
	_, page = b.get("/calls/two")
	mustContain(t, page, "office_hours", "trace-7", "Calls that belong together", "Explain such a call")
	if !strings.Contains(page, "as_id=ada") {
		t.Error("the explanation is not that of the caller")
	}
	_, page = b.get("/calls?view=history&name=greet")
	if mustContain(t, page, "Older calls"); !strings.Contains(page, "before=41") {
		t.Error("older calls start at another record")
	}
	if _, page := b.get("/calls/old"); !strings.Contains(page, "41") {
		t.Error("a call of the audit log is not shown")
	}
	live := b.live("/calls/events?after=2&outcome=ok")
	live.until("event: feed")
	server.lines <- control.Call{CallID: "three", Name: "hidden", Outcome: "TIMEOUT"}
	server.lines <- control.Call{CallID: "one", Name: "again", Outcome: "ok"}
	server.lines <- control.Call{CallID: "four", Name: "fourth", Outcome: "ok"}
	if got := live.until("fourth"); strings.Contains(got, "hidden") || strings.Contains(got, "again") {
		t.Errorf("events %q", got)
	}
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

func TestFeed_beginsAgain(t *testing.T) {
	t.Parallel()
	backend := newFake()
	begun := 0
	backend.streams[control.Calls] = func(p *pipe) {
		begun++
		p.lines <- control.Call{CallID: "same", Outcome: "ok"}
		p.lines <- control.Call{CallID: fmt.Sprint(begun), Outcome: "ok"}
		if begun == 1 {
			close(p.lines)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		f := newFeed(ctx, backend, time.Now)
		defer f.close()
		defer cancel()
		f.start(ctx)
		waitForCalls(f, 3)
		calls, problem, _ := f.after(1)
		var ids []string
		for _, c := range calls {
			ids = append(ids, c.CallID)
		}
		if diff := cmp.Diff([]string{"1", "2"}, ids); diff != "" || problem != "" {
			t.Errorf("problem %q (-want +got):\n%s", problem, diff)
		}
	})
}

func TestFeed_bounded(t *testing.T) {
	t.Parallel()
	f := newFeed(t.Context(), newFake(), time.Now)
	for i := range maxFeed + 10 {
		f.add(control.Call{CallID: fmt.Sprint(i), Time: time.Now()})
	}
	calls, _, _ := f.after(0)
	if len(calls) != maxFeed || len(f.known) != maxFeed || calls[0].N != 11 {
		t.Errorf("%d calls, %d known, the first is %d", len(calls), len(f.known), calls[0].N)
	}
}

func TestPolicies(t *testing.T) {
	t.Parallel()
	backend := newFake()
	backend.answers[control.Matrix] = control.MatrixResult{
		Principals: []identity.Principal{{ID: "ada", Kind: "key"}}, Items: []control.ItemName{{Kind: "tool", Address: "greet"}, {Kind: "tool", Address: "erase"}},
		Cells: [][]control.MatrixCell{{{Verdict: "allowed"}}, {{Verdict: "denied", Policy: "office_hours"}}}, Truncated: true,
	}
	backend.answers[control.Explain] = func(params json.RawMessage) any {
		if strings.Contains(string(params), "missing") {
			return errors.New("the server has no such tool")
		}
		return control.ExplainResult{Verdict: "denied", Message: "come back later", Rulings: []control.RulingLine{{Policy: control.Policy{Name: "office_hours"}, Decides: true, Says: "it is night"}}}
	}
	b := browse(t, backend).signIn()
	_, page := b.get("/policies")
	mustContain(t, page, "ada", "greet", "allowed", "denied", "office_hours", "left out some")
	if _, page := b.get("/policies?q=erase"); strings.Contains(pageText(t, page), "greet") {
		t.Error("the search does not hide other items")
	}
	_, page, _ = b.post("/policies/explain", url.Values{"kind": {"tool"}, "address": {"erase"}, "json": {`{"id":1}`}})
	mustContain(t, page, "come back later", "it is night", "decides")
	_, page, _ = b.post("/policies/explain", url.Values{"kind": {"tool"}, "address": {"missing"}})
	mustContain(t, page, "the server has no such tool")
}

func TestPolicies_edit(t *testing.T) {
	t.Parallel()
	backend := newFake()
	text := "policy \"p\" {\r\n  deny = \"a < b && '</textarea>'\"\r\n}\r\n"
	backend.answers[control.PolicyFiles] = func(params json.RawMessage) any {
		files := control.PolicyFilesResult{Revision: "r1", Files: []string{"mcpd.hcl", "tools.d/pay.hcl"}}
		switch {
		case strings.Contains(string(params), "pay.hcl"):
			files.Text = text
		case strings.Contains(string(params), "mcpd.hcl"):
			files.Text = "# \u202e \\\r\n"
		case strings.Contains(string(params), "other"):
			return errors.New("the server has no policies in a file")
		}
		return files
	}
	replayed := control.ReplayResult{
		Diagnostics: "tools.d/pay.hcl:1: warning: careful", Counts: &control.ReplayCounts{Calls: 9, Judged: 7, Same: 5, AllowedToDenied: 1, DeniedToAllowed: 1, Unknown: 2, Reasons: map[string]int{"the record lacks it": 2}},
		Changes: []control.ReplayedCall{{CallID: "c7", Name: "pay", Principal: "ada", Before: control.PolicyDecision{Verdict: "allowed"}, After: control.PolicyDecision{Verdict: "denied", Policy: "p", Place: &control.Place{File: "tools.d/pay.hcl", Line: 1}}}},
	}
	var edit control.PolicyEdit
	backend.answers[control.Replay] = func(params json.RawMessage) any {
		if err := json.Unmarshal(params, &edit); err != nil {
			t.Error(err)
		}
		if strings.Contains(edit.Text, "busy") {
			return errors.New("the server is replaying another edit")
		}
		return replayed
	}
	b := browse(t, backend).signIn()
	_, page := b.get("/policies")
	mustContain(t, page, "mcpd.hcl", "tools.d/pay.hcl")
	if strings.Contains(page, "Replay the last") {
		t.Error("a form without a file")
	}
	_, page = b.get("/policies?file=tools.d/pay.hcl")
	mustContain(t, page, "Text of tools.d/pay.hcl", "a < b && '</textarea>'")
	form := url.Values{"file": {"tools.d/pay.hcl"}, "revision": {"r1"}, "text": {strings.ReplaceAll(text, "a", "é")}}
	_, page, _ = b.post("/policies/replay", form)
	mustContain(t, page, "1 call denied, 1 call allowed", "9 calls replayed, 7 judged: 5 the same. 2 not judged.", "2 not judged: the record lacks it", "warning: careful", "denied by p", "tools.d/pay.hcl:1", "'</textéreé>'")
	if !strings.Contains(page, `href="/calls/c7"`) {
		t.Error("no link to the call")
	}
	if want := strings.ReplaceAll(strings.ReplaceAll(text, "a", "é"), "\r", ""); edit.Text != want || edit.File != "tools.d/pay.hcl" || edit.Revision != "r1" {
		t.Errorf("got %+v", edit)
	}
	replayed = control.ReplayResult{Diagnostics: "tools.d/pay.hcl:1: error: no"}
	_, page, _ = b.post("/policies/replay", form)
	mustContain(t, page, "The edit has errors", "error: no")
	replayed = control.ReplayResult{Problem: "the server writes no audit log"}
	_, page, _ = b.post("/policies/replay", form)
	mustContain(t, page, "No calls were replayed", "the server writes no audit log")
	form.Set("text", "busy")
	_, page, _ = b.post("/policies/replay", form)
	mustContain(t, page, "the server is replaying another edit", "busy")

	asked := len(backend.requests(control.Replay))
	for _, posted := range []string{"\xff", strings.Repeat("x", maxEdited+1)} {
		form.Set("text", posted)
		if _, page, _ = b.post("/policies/replay", form); !strings.Contains(pageText(t, page), "Use mcpd policy replay.") {
			t.Errorf("%.10q is replayed", posted)
		}
	}
	if n := len(backend.requests(control.Replay)); n != asked {
		t.Errorf("%d edits are replayed", n-asked)
	}
	// The page shows invisible characters as escapes, and the server gets them.
	_, page = b.get("/policies?file=mcpd.hcl")
	mustContain(t, page, `# \u{202E} \\`)
	if b.post("/policies/replay", postedBy(t, page, "/policies/replay")); edit.File != "mcpd.hcl" || edit.Text != "# \u202e \\\n" {
		t.Errorf("got %+v", edit)
	}
	if _, page = b.get("/policies?file=other"); !strings.Contains(page, "no policies in a file") || !strings.Contains(page, "tools.d/pay.hcl") {
		t.Error("an unknown file")
	}
}

// Callers of a listener do not replay edits, which may read files of the server.
func TestPolicies_editOnListener(t *testing.T) {
	t.Parallel()
	backend := newFake()
	b := browse(t, backend, func(o *Options) { o.Base, o.Hosts, o.SignOut = "/console", nil, func() {} })
	b.csrf = b.console.session.csrf
	_, page := b.get("/console/policies?file=mcpd.hcl")
	mustContain(t, page, "mcpd policy replay AUDIT --with DIR")
	_, replayed, _ := b.post("/console/policies/replay", url.Values{"file": {"mcpd.hcl"}, "text": {"x"}})
	if strings.Contains(page+replayed, "edit-text") || len(backend.requests(control.PolicyFiles)) > 0 {
		t.Error("a form on a listener")
	}
}

func TestOverview_limits(t *testing.T) {
	t.Parallel()
	backend := newFake()
	b := browse(t, backend).signIn()
	_, page := b.get("/")
	mustContain(t, page, "No key uses 80 % of a limit.", "The files have no limit block.")
	full := make([]control.KeyUse, maxNear)
	for i := range full {
		full[i] = control.KeyUse{Key: fmt.Sprint("bot", i), Share: 1}
	}
	backend = newFake()
	backend.answers[control.Limits] = []control.LimitUse{
		{Limit: "callers", Kind: "rate", Bound: "10 calls a minute", Keys: 2, Most: []control.KeyUse{{Key: "ada", AuthKind: "jwt", Issuer: "https://idp", Share: 0.999}, {Key: "bob", AuthKind: "key", Share: 0.79}}},
		{Limit: "arguments", Kind: "rate", Bound: "1 call an hour", Most: []control.KeyUse{{Hash: "0a1b", AuthKind: "jwt", Share: 0.8}, {Rest: true, Share: 0.1}}},
		{Limit: "shared", Kind: "concurrency", Bound: "3 running", Shared: true},
		{Limit: "full", Kind: "concurrency", Bound: "5 running", Most: full},
	}
	_, page = browse(t, backend).signIn().get("/")
	mustContain(t, page, "ada (jwt of https://idp)", "99 %", "key 0a1b of a principal (jwt)", "80 %", "79 % bob (key)", "10 % all further keys", "counted in the database of all replicas", "5 running")
	near, _, _ := strings.Cut(page[strings.Index(page, `id="near"`):], "<details>")
	if strings.Contains(near, "bob") || strings.Count(near, "<tr>") != maxNear+1 {
		t.Errorf("near their bound:\n%s", near)
	}
	backend = newFake()
	backend.answers[control.Limits] = errors.New("unknown request")
	if _, page = browse(t, backend).signIn().get("/"); !strings.Contains(page, "unknown request") || !strings.Contains(page, "Healthy") {
		t.Error("an older server")
	}
}

func TestAccess(t *testing.T) {
	t.Parallel()
	backend := newFake()
	backend.answers[control.Keys] = []control.Key{{KeyName: control.KeyName{Auth: "keys", ID: "k1"}, Name: "ci", Principal: "ci", State: "active"}, {KeyName: control.KeyName{Auth: "keys", ID: "k2"}, Name: "old", State: "revoked"}}
	backend.answers[control.Tokens] = control.TokensResult{Tokens: []control.Token{{Secret: "crm", Principal: "ada", Kind: "jwt"}}}
	backend.answers[control.Tasks] = []control.Task{{TaskName: control.TaskName{Principal: "ada", AuthKind: "jwt", ID: "t1"}, Tool: "report", Status: "working"}}
	backend.answers[control.Pins] = []control.Pin{{PinName: control.PinName{Upstream: "docs", Tool: "search", Digest: "d1"}, Change: "- old\n+ new"}}
	for _, action := range []control.Action{control.RevokeKey, control.CancelTask, control.Accept} {
		backend.answers[action] = struct{}{}
	}
	backend.answers[control.DropTokens] = control.TokensResult{Tokens: []control.Token{{Secret: "crm", Principal: "ada"}}}
	b := browse(t, backend).signIn()
	_, page := b.get("/access")
	mustContain(t, page, "ci", "crm", "report")
	if strings.Contains(page, "id=k2") {
		t.Error("a revoked key can be revoked")
	}
	_, page = b.get("/upstreams")
	mustContain(t, page, "+ new")
	rows := []struct {
		path   string
		action control.Action
		params string
		at     string
		text   string
	}{
		{"/confirm/revoke_key?auth=keys&id=k1", control.RevokeKey, `{"auth":"keys","id":"k1"}`, "/access?done=revoke_key", "The key is revoked."},
		{"/confirm/cancel?auth_kind=jwt&id=t1&principal=ada", control.CancelTask, `{"principal":"ada","auth_kind":"jwt","id":"t1"}`, "/access?done=cancel", "The task is cancelled."},
		{"/confirm/accept?digest=d1&tool=search&upstream=docs", control.Accept, `{"upstream":"docs","tool":"search","digest":"d1"}`, "/upstreams?done=accept", "The tool is accepted."},
		{"/confirm/drop_token?kind=jwt&principal=ada&secret=crm", control.DropTokens, "", "/access?done=drop_token", "The token is dropped."},
	}
	for _, row := range rows {
		_, page := b.get(row.path)
		mustContain(t, page, "?", "Keep it as it is")
		if n := len(backend.requests(row.action)); n != 0 {
			t.Errorf("%s: a GET made %d requests", row.path, n)
		}
		_, page, at := b.post(row.path, nil)
		if mustContain(t, page, row.text); at != row.at {
			t.Errorf("%s: at %s, want %s", row.path, at, row.at)
		}
		made := backend.requests(row.action)
		if len(made) != 1 || string(made[0].Params) != row.params {
			t.Errorf("%s: requests %+v", row.path, made)
		}
		if row.action == control.DropTokens && (made[0].Secret != "crm" || made[0].Principal != "ada" || made[0].Kind != "jwt") {
			t.Errorf("tokens of %+v", made[0].TokenFilter)
		}
	}
	for text, result := range map[string]control.TokensResult{
		"no token matches": {}, "the database is gone": {Tokens: []control.Token{{Secret: "crm"}}, Failure: "the database is gone"},
	} {
		backend.answers[control.DropTokens] = result
		backend.encoded.Delete(control.DropTokens)
		if _, page, at := b.post("/confirm/drop_token?kind=jwt&principal=ada&secret=crm", nil); strings.Contains(at, "done=") {
			t.Errorf("%s: the console says that the token is dropped", text)
		} else {
			mustContain(t, page, text)
		}
	}
	if status, page := b.get("/confirm/accept?upstream=docs&tool=search&digest=other"); status != http.StatusNotFound {
		t.Errorf("a tool that has changed: status %d: %s", status, pageText(t, page))
	}
}

func TestConsole_serverGone(t *testing.T) {
	t.Parallel()
	backend := newFake()
	for action := range backend.answers {
		backend.answers[action] = errors.New("no server answers there")
	}
	backend.streams = nil
	b := browse(t, backend).signIn()
	for _, path := range []string{"/", "/items", "/item?kind=tool&address=greet", "/upstreams"} {
		status, page := b.get(path)
		if mustContain(t, page, "no server answers there"); status != http.StatusBadGateway {
			t.Errorf("%s: status %d", path, status)
		}
	}
	for _, path := range []string{"/policies", "/access"} {
		if status, page := b.get(path); status != http.StatusOK || !slices.ContainsFunc([]string{"no server", "no stream"}, func(s string) bool { return strings.Contains(page, s) }) {
			t.Errorf("%s: status %d: %s", path, status, pageText(t, page))
		}
	}
}

// A line of a definition has its sign, even if it looks like the heading of a diff.
func TestDiffLines(t *testing.T) {
	t.Parallel()
	const text = "--- crm/a sha256 1\n+++ crm/a sha256 2\n@@ -1,2 +1,3 @@\n same\n--- gone\n+++ new\n+ +\n"
	want := []diffLine{
		{"", "--- crm/a sha256 1\n"}, {"", "+++ crm/a sha256 2\n"}, {"", "@@ -1,2 +1,3 @@\n"}, {"", " same\n"}, {"-", "--- gone\n"}, {"+", "+++ new\n"}, {"+", "+ +\n"},
	}
	if diff := cmp.Diff(want, diffLines(text)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// The page that asks for a confirmation shows all of a change, since all of it is accepted.
func TestConfirm_longChange(t *testing.T) {
	t.Parallel()
	backend := newFake()
	pin := control.PinName{Upstream: "crm", Tool: "erase", Digest: "d"}
	const last = "+  \"the last line\"\n"
	change := "--- crm/erase\n+++ crm/erase\n" + strings.Repeat("+"+strings.Repeat("x", 398)+"\n", 1999) + last
	backend.answers[control.Pins] = []control.Pin{{PinName: pin, Change: change}, {PinName: control.PinName{Upstream: "crm", Tool: "other"}, Problem: "too long to show"}}
	b := browse(t, backend).signIn()
	_, page := b.get("/confirm/accept?upstream=crm&tool=erase&digest=d")
	if text := pageText(t, page); !strings.Contains(text, change) || strings.Count(page, "<ins>") != 2000 {
		t.Errorf("the page has %d lines of the change: %.300s", strings.Count(page, "<ins>"), text)
	}
	_, page = b.get("/upstreams")
	mustContain(t, page, "too long to show")
}

// opening is a backend whose calls wait until they may start.
type opening struct {
	*fake
	entered, start chan struct{}
}

func (o opening) Open(ctx context.Context, r control.Request) (Stream, error) {
	if r.Action == control.Try {
		o.entered <- struct{}{}
		<-o.start
	}
	return o.fake.Open(ctx, r)
}

// Calls that have not started yet count, too.
func TestTry_startingCalls(t *testing.T) {
	t.Parallel()
	backend := opening{newFake(), make(chan struct{}, 2*maxActive), make(chan struct{})}
	b := browse(t, backend).signIn()
	const try = "/item/try?kind=tool&address=greet"
	var posts sync.WaitGroup
	for range maxActive {
		posts.Go(func() {
			b.send("POST", try, "csrf="+b.csrf, map[string]string{"Origin": b.origin, "Content-Type": "application/x-www-form-urlencoded"})
		})
	}
	for range maxActive {
		<-backend.entered
	}
	if status, _, _ := b.post(try, nil); status != http.StatusServiceUnavailable {
		t.Errorf("a call beyond the limit: status %d", status)
	}
	close(backend.start)
	posts.Wait()
}

// Calls with large results are dropped before there are too many calls.
func TestTry_largeResults(t *testing.T) {
	t.Parallel()
	b := browse(t, newFake()).signIn()
	large := json.RawMessage(`"` + strings.Repeat("x", maxHeld/4) + `"`)
	for i := range 6 {
		b.console.runs = append(b.console.runs, &run{id: fmt.Sprint(i), result: &control.TryResult{Value: large}})
	}
	_, _, at := b.post("/item/try?kind=tool&address=greet", nil)
	if got := len(b.console.runs); got != 4 || b.console.runs[0].id != "3" {
		t.Errorf("%d calls are kept, want three large ones and %s", got, at)
	}
}

// slowStream sends each answer when it may.
type slowStream struct {
	*pipe
	entered, send chan struct{}
}

func (s slowStream) Send(value any) error {
	s.entered <- struct{}{}
	<-s.send
	return s.pipe.Send(value)
}

// A form that is sent twice answers once: the second answer would cancel the call.
func TestAnswer_twice(t *testing.T) {
	t.Parallel()
	b := browse(t, newFake()).signIn()
	stream := slowStream{&pipe{answers: make(chan control.TryAnswer, 10)}, make(chan struct{}, 10), make(chan struct{})}
	b.console.runs = []*run{{id: "r", stream: stream, asked: 1, ask: []control.TryQuestion{{Key: "k", Method: methodElicit}}, changed: make(chan struct{})}}
	answer := func() {
		b.send("POST", "/runs/r/answer", "asked=1&action=accept&csrf="+b.csrf, map[string]string{"Origin": b.origin, "Content-Type": "application/x-www-form-urlencoded"})
	}
	var first sync.WaitGroup
	first.Go(answer)
	<-stream.entered
	second := make(chan struct{})
	go func() {
		defer close(second)
		answer()
	}()
	select {
	case <-second:
	case <-stream.entered:
		t.Error("the second answer is sent, too")
	}
	close(stream.send)
	first.Wait()
	<-second
}

// A page has images up to a total size.
func TestNewResult_manyImages(t *testing.T) {
	t.Parallel()
	image := base64.StdEncoding.EncodeToString(append([]byte("\x89PNG\r\n\x1a\n"), make([]byte, 3<<20)...))
	content := `{"type":"image","data":"` + image + `"}`
	shown := 0
	for _, b := range newResult(control.TryResult{Content: json.RawMessage("[" + content + strings.Repeat(","+content, 9) + "]")}).Blocks {
		if b.Image != "" {
			shown += len(b.Image)
		} else if b.Note == "" {
			t.Error("an image is left out without a note")
		}
	}
	if shown == 0 || shown > maxAllMedia {
		t.Errorf("%d bytes of images", shown)
	}
}

func TestStreams_bounded(t *testing.T) {
	t.Parallel()
	b := browse(t, newFake()).signIn()
	for range maxStreams {
		b.live("/calls/events").until("event: feed")
	}
	if status, _ := b.get("/calls/events"); status != http.StatusServiceUnavailable {
		t.Errorf("status %d", status)
	}
}

// BenchmarkItems measures the time of the server for the first page of 1,000 tools.
func BenchmarkItems(b *testing.B) {
	backend := newFake()
	backend.answers[control.Catalog] = catalogOf(1000)
	c, err := New(backend, Options{Hosts: []string{"localhost:1"}})
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	cookie := &http.Cookie{Name: cookieName, Value: c.startSession().id}
	for b.Loop() {
		r := httptest.NewRequest(http.MethodGet, "http://localhost:1"+c.base+"/items", nil)
		r.AddCookie(cookie)
		w := httptest.NewRecorder()
		if c.ServeHTTP(w, r); w.Code != http.StatusOK {
			b.Fatal(w.Code)
		}
	}
}
