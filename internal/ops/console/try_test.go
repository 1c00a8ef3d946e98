package console

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/ops/control"
)

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
		if got := testFile(name, block); got != want {
			t.Errorf("the file for %q is %q, want %q", name, got, want)
		}
	}
	if got := testFile("a", "test \"recorded call of a 3\" {\n}\n"); got != "a_test_3.hcl" {
		t.Errorf("the file of the third test is %q", got)
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

// A template is read by the URI of its variables, on the page of the template.
func TestTry_template(t *testing.T) {
	t.Parallel()
	const template = "notes://{id}{?page}"
	item := control.ItemResult{
		ItemSummary: control.ItemSummary{ItemName: control.ItemName{Kind: "template", Address: template}},
		Arguments:   []control.Argument{{Name: "id", Description: "of the note", Required: true, Completes: true}, {Name: "page"}},
	}
	const long = 5000 // bytes, more than a URI may have
	rows := []struct {
		name, id, page string
		uri            string // of the call; "" if there is none
		problem        string
	}{
		{"plain", "7", "", "notes://7", ""},
		{"optional variable", "7", "2", "notes://7?page=2", ""},
		{"path", "../../etc/passwd", "", "notes://..%2F..%2Fetc%2Fpasswd", ""},
		{"encoded", "%2e%2F?page=9#x", "", "notes://%252e%252F%3Fpage%3D9%23x", ""},
		{"lines", "a\r\nHost: b", "", "notes://a%0AHost%3A%20b", ""}, // a form ends lines with CR LF
		{"markup and other characters", "<b>ü\u202e\x00", "", "notes://%3Cb%3E%C3%BC%E2%80%AE%00", ""},
		{"missing", "", "2", "", `the variable "id" has no value`},
		{"bytes", "\xff\xfe", "", "", `the value of "id" is not UTF-8`},
		{"long", strings.Repeat("x", long), "", "", "the URI is too long"},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			backend := newFake()
			backend.answers[control.Item] = item
			b := browse(t, backend).signIn()
			try := "/item/try?" + url.Values{"kind": {"template"}, "address": {template}}.Encode()
			form := url.Values{"arg/id": {row.id}, "arg/page": {row.page}, "edit": {"uri"}}
			if _, page, _ := b.post(try, form); row.uri != "" {
				mustContain(t, page, "URI: "+row.uri)
			} else {
				mustContain(t, page, "The URI is shown when all required variables have values.")
			}
			if made := backend.requests(control.Try); len(made) != 0 {
				t.Errorf("the URI made calls: %v", made)
			}
			form.Del("edit")
			_, page, at := b.post(try, form)
			checkPage(t, row.name, page)
			made := backend.requests(control.Try)
			if row.uri == "" {
				if mustContain(t, page, row.problem); len(made) != 0 {
					t.Errorf("calls %v", made)
				}
				return
			}
			id, _, _ := strings.Cut(at, "#")
			mustContain(t, b.ended(id), "URI: "+row.uri)
			var call control.TryCall
			if len(made) != 1 || made[0].DecodeParams(&call) != nil || call.ItemName != (control.ItemName{Kind: "resource", Address: row.uri}) || call.Arguments != nil {
				t.Errorf("calls %v", made)
			}
		})
	}
}

// Requests for the page of a call share its form, and change nothing in it.
func TestTry_formShared(t *testing.T) {
	f := newFake()
	item := itemWith(`{"type":"object","properties":{"name":{"type":"string"}}}`)
	item.Kind, item.Arguments = "prompt", []control.Argument{{Name: "name", Completes: true}}
	f.answers[control.Item] = item
	b := browse(t, f).signIn()
	_, _, at := b.post("/item/try?kind=prompt&address=greet", url.Values{"arg/name": {"Ada"}})
	if page := b.ended(strings.TrimSuffix(at, "/")); !strings.Contains(page, "/item/complete") {
		t.Fatalf("no completion in %s", page)
	}
	b.console.mu.Lock()
	defer b.console.mu.Unlock()
	if run := b.console.runs[0]; len(run.form.Fields) != 1 || run.form.Fields[0].Complete != "" {
		t.Errorf("a page changed the form of its call: %+v", run.form)
	}
}

func TestForm_expand(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct{ template, text, want, problem string }{
		"values":           {"a://{x}/{+y}", `{"x":"/","y":"b/c"}`, "a://%2F/b/c", ""},
		"no variables":     {"a://b", "{}", "a://b", ""},
		"a number":         {"a://{x}", `{"x":1}`, "", "must be a string"},
		"unknown variable": {"a://b{?x}", `{"y":"1"}`, "", `no variable "y"`},
		"ambiguous":        {"a://{x}{y}", `{"x":"1","y":"2"}`, "", "the template is not supported"},
	} {
		got, err := rawForm(row.text, "").expand(row.template)
		if got != row.want || (err == nil) != (row.problem == "") || err != nil && !strings.Contains(err.Error(), row.problem) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
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
		{"wrong number", url.Values{"arg/n": {"many"}}, "This text is not a number."},
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
