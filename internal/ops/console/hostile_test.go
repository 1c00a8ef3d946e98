package console

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"

	"golang.org/x/net/html"

	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/ops/control"
)

// mark is in each hostile text. No element and no name of an attribute may have it.
const mark = "h0st1le"

// hostileTexts are texts that try to become markup, script, style, an address, a command of a
// terminal, or that are too long or not text.
func hostileTexts() []string {
	shapes := []string{
		"<script>%s</script>", "</script><script>%s</script>", "<img src=x onerror=%s>", "\"><svg onload=%s>", "' onmouseover='%s", "\" autofocus onfocus=\"%s",
		"<%s>", "</pre><%s>", "</textarea><%s>", "</title><%s>", "</select><%s>", "--><%s><!--", "<!--%s", "<![CDATA[<%s>]]>", "<iframe srcdoc='<%s>'>",
		"javascript:%s()", "JaVaScRiPt:%s", "java\tscript:%s", "data:text/html,<%s>", "vbscript:%s", "//%s.example/", "http://%s.example/", "\\\\%s\\share",
		"{{.%s}}", "{{template \"%s\"}}", "${%s}", "{%% %s %%}", "<%%= %s %%>", "[[%s]]", "`%s`",
		"<div hx-get=/%s hx-trigger=load>", "<div sse-connect=/%s>", "<meta http-equiv=refresh content='0;url=//%s'>", "<base href=//%s>", "<link rel=stylesheet href=//%s>", "<style>*{x:%s}</style>", "<form action=//%s>",
		"\x1b[2J\x1b]0;%s\a", "\x1b[31m%s", "\x9b2J%s", "\r%s\rok", "\u202e%s\u202c", "\u2066%s\u2069", "\u200b%s\u200b", "\u2028%s\u2029", "\ufeff%s", "\U000e0041%s", "\x00%s\x00", "\x7f%s\b", "\xff\xfe%s", "\xed\xa0\x80%s",
		"&lt;%s&gt;", "&#x3c;%s&#x3e;", "&%s;", "+ADw-%s+AD4-", "%s\nSet-Cookie: x=y", "data: x\n\nevent: %s\ndata: y\n\n", "%s\nevent: done\n", "~1%s/~0", "../../%s", "?%s=1#x", "%s\"}],\"x\":[{", "<a href=\"javascript:%s\">x</a>",
	}
	var all []string
	for _, shape := range shapes {
		text := fmt.Sprintf(shape, mark)
		all = append(all, text, "a"+text+text, text+"\n"+text, strings.ToUpper(text)+mark, "𝒜"+text+"é")
	}
	return append(all, strings.Repeat(mark+"<b>", 1500), strings.Repeat("\x1b"+mark, 2000), strings.Repeat("{\"a\":", 2000)+mark, strings.Repeat("[", 5000)+mark, strings.Repeat("<"+mark+">", 1500))
}

// hostileSchema returns a schema of which each text is hostile.
func hostileSchema(text string) json.RawMessage {
	encoded, _ := json.Marshal(map[string]any{
		"type": "object", "title": text, "description": text, "required": []string{text},
		"properties": map[string]any{
			text: map[string]any{"type": "string", "description": text, "default": text, "format": text, "pattern": text},
			"e":  map[string]any{"enum": []any{text, 1}, "enumNames": []string{text, text}},
			"n":  map[string]any{"type": "number", "description": text},
			"l":  map[string]any{"type": "array", "default": []string{text}, "items": map[string]any{"type": "string", "title": text}},
			"o":  map[string]any{"type": "object", "description": text, "properties": map[string]any{text: map[string]any{"type": []string{text, "null"}}}},
			"c":  map[string]any{"oneOf": []any{map[string]any{"title": text, "type": "string"}, map[string]any{"title": text, "properties": map[string]any{text: map[string]any{}}}}},
			"r":  map[string]any{"$ref": text},
		},
	})
	return encoded
}

// deepSchema returns a schema that is nested n times.
func deepSchema(n int) json.RawMessage {
	return json.RawMessage(`{"type":"object","properties":` + strings.Repeat(`{"a":{"type":"object","properties":`, n) + `{}` + strings.Repeat(`}}`, n) + `}`)
}

// hostileServer returns a server of which all texts are hostile.
func hostileServer(text string, schema json.RawMessage) *fake {
	if !utf8.ValidString(text) {
		text = strings.ToValidUTF8(text, "\ufffd") // as it is in JSON
	}
	now := time.Now()
	name := control.ItemName{Kind: "tool", Address: text}
	place := &control.Place{File: text, Line: 1, Column: 1}
	summary := control.ItemSummary{ItemName: name, Title: text, Summary: text, Origin: text, Place: place}
	value, _ := json.Marshal(text)
	row := control.Call{Seq: 1, Time: now, CallID: text, RootID: "r", Kind: text, Name: text, Principal: text, AuthKind: text, Agent: text, Via: text, Listener: text, Outcome: text, DeniedBy: text, Message: text, RequestID: text, TraceID: text, Revision: text}
	denied := row
	denied.CallID, denied.Outcome = text+"2", "POLICY_DENIED"
	content, _ := json.Marshal([]map[string]any{
		{"type": "text", "text": text}, {"type": text, "text": text}, {"type": "image", "mimeType": "image/png", "data": text}, {"type": "audio", "mimeType": "audio/wav", "data": base64.StdEncoding.EncodeToString([]byte("RIFF\x00\x00\x00\x00WAVE" + text))},
		{"type": "image", "mimeType": "image/svg+xml", "data": base64.StdEncoding.EncodeToString([]byte(`<svg xmlns="http://www.w3.org/2000/svg">` + text + `</svg>`))},
		{"type": "image", "mimeType": "image/png", "data": base64.StdEncoding.EncodeToString([]byte(text))},
		{"type": "resource", "resource": map[string]string{"uri": text, "mimeType": "text/html", "text": text}},
		{"type": "resource_link", "uri": text, "name": text, "description": text},
	})
	reply, _ := json.Marshal(map[string]any{"contents": []map[string]string{{"uri": text, "text": text}}, "messages": []map[string]any{{"role": text, "content": map[string]string{"type": "text", "text": text}}}})
	params, _ := json.Marshal(map[string]any{"message": text, "url": text})
	form, _ := json.Marshal(map[string]any{"message": text, "requestedSchema": schema})
	f := newFake()
	f.answers = map[control.Action]any{
		"diagnostics": text,
		control.Status: map[string]any{
			"status": text, "revision": text, "listeners": []string{text}, "problems": []map[string]string{{"severity": "error"}}, "version": text, "sessions": map[string]int{text: 1}, "state": map[string]any{"database": text, "away": true, "error": text},
			"upstreams": []map[string]any{{"name": text, "error": text, "unkept": text, "quarantined": []string{text}}},
		},
		control.Catalog: control.CatalogResult{Revision: text, Items: []control.ItemSummary{summary, summary}},
		control.Item: control.ItemResult{
			ItemSummary: summary, Description: text, Input: schema, Output: schema, Annotations: value, Grants: []string{text}, Source: text,
			Policies: []control.Policy{{Name: text, Place: place}}, Limits: []string{text},
		},
		control.Explain:     control.ExplainResult{Verdict: text, Lines: []string{text}, Code: text, Message: text, Rulings: []control.RulingLine{{Policy: control.Policy{Name: text, Place: place}, Decides: true, Says: text}}},
		control.Matrix:      control.MatrixResult{Principals: []identity.Principal{{ID: text, Kind: identity.Kind(text), Agent: text}}, Items: []control.ItemName{name}, Cells: [][]control.MatrixCell{{{Verdict: text, Policy: text}}}},
		control.Audit:       control.AuditResult{Calls: []control.Call{row}, Problem: text, More: true},
		control.Pins:        []control.Pin{{PinName: control.PinName{Upstream: "u", Tool: "t", Digest: "d"}, Change: text}, {PinName: control.PinName{Upstream: text, Tool: text, Digest: text}, Change: text}},
		control.Keys:        []control.Key{{KeyName: control.KeyName{Auth: text, ID: text}, Name: text, Principal: text, Scopes: []string{text}, Groups: []string{text}, Agent: text, State: text}},
		control.Tasks:       []control.Task{{TaskName: control.TaskName{Principal: text, AuthKind: text, Issuer: text, ID: text}, Tool: text, Status: "working"}},
		control.Tokens:      control.TokensResult{Tokens: []control.Token{{Secret: text, Principal: text, Kind: text, Issuer: text}}},
		control.Limits:      []control.LimitUse{{Limit: text, Place: place, Kind: text, Bound: text, Problem: text}, {Limit: text, Place: place, Kind: text, Bound: text, Keys: 1, Shared: true, Most: []control.KeyUse{{Key: text, AuthKind: text, Issuer: text, Share: 0.9}, {Hash: text, AuthKind: text, Share: 0.8}, {Rest: true, Share: 2}}}},
		control.PolicyFiles: control.PolicyFilesResult{Revision: text, Files: []string{text}, Text: text, Problem: text},
		control.Replay: control.ReplayResult{
			Diagnostics: text, Problem: text, Truncated: true, Counts: &control.ReplayCounts{Calls: 1, Unknown: 1, Gone: 1, OtherChanges: 1, Reasons: map[string]int{text: 1}},
			Changes: []control.ReplayedCall{{Time: now, CallID: text, Kind: text, Name: text, Principal: text, AuthKind: text, Before: control.PolicyDecision{Verdict: text, Policy: text, Place: place}, After: control.PolicyDecision{Verdict: text, Policy: text, Place: place}}},
		},
	}
	f.streams = map[control.Action]func(*pipe){
		control.Calls: func(p *pipe) { p.lines <- row; p.lines <- denied },
		control.Try: func(p *pipe) {
			for _, e := range []control.TryEvent{
				{At: now, Progress: &control.TryProgress{Done: 1, Message: text}},
				{At: now, Log: &control.TryLog{Level: text, Message: text, Fields: value}},
				{At: now, Step: &control.TryStep{Name: text, Began: now, DurationMS: 1, Failed: text, Depth: -5}},
				{At: now, Ask: []control.TryQuestion{
					{Key: text, Method: "elicitation/create", Params: form}, {Key: "u" + text, Method: "elicitation/create", Params: params},
					{Key: "s" + text, Method: "sampling/createMessage", Params: params}, {Key: "r" + text, Method: "roots/list", Params: params}, {Key: "x" + text, Method: text, Params: params},
				}},
			} {
				p.lines <- e
			}
			go func() {
				select {
				case <-p.answers:
					p.lines <- control.TryEvent{At: now, Result: &control.TryResult{CallID: text, Revision: text, Code: text, Message: text, Value: value, Content: content, Reply: reply, Details: value, Trace: text}}
				case <-p.closed:
				}
			}()
		},
	}
	return f
}

// TestConsole_hostileText renders hostile texts in each place of each page. The pages have the
// elements and attributes of the templates, and no others.
func TestConsole_hostileText(t *testing.T) {
	t.Parallel()
	texts, wide := hostileTexts(), 20_000
	if len(texts) < 300 {
		t.Fatalf("%d texts", len(texts))
	}
	if testing.Short() {
		texts, wide = texts[:16], 1000
	}
	for part := range slices.Chunk(texts, len(texts)/8+1) {
		t.Run(fmt.Sprintf("%.20q", part[0]), func(t *testing.T) {
			t.Parallel()
			b, server := browseHostile(t)
			for _, text := range part {
				checkHostile(t, b, server, hostileServer(text, hostileSchema(text[:min(len(text), 5000)])), text) // the text is in it 20 times
			}
		})
	}
	t.Run("1 MB strings", func(t *testing.T) {
		t.Parallel()
		long := strings.Repeat(mark+"<\x1b", wide*50/9)
		backend := hostileServer(mark, hostileSchema(mark))
		item := backend.answers[control.Item].(control.ItemResult)
		item.Description, item.Source, item.Title, item.Grants = long, long, long, []string{long}
		backend.answers[control.Item], backend.answers["diagnostics"] = item, long
		backend.answers[control.Pins] = []control.Pin{{PinName: control.PinName{Upstream: "u", Tool: long, Digest: "d"}, Change: long}, {PinName: control.PinName{Upstream: "u", Tool: "t", Digest: "d"}, Change: long}}
		backend.answers[control.Catalog] = control.CatalogResult{Items: []control.ItemSummary{{ItemName: control.ItemName{Kind: "tool", Address: long}, Summary: long}}}
		b, server := browseHostile(t)
		checkHostile(t, b, server, backend, mark)
	})
	for name, schema := range map[string]json.RawMessage{
		"deep schema": deepSchema(2000), "not a schema": json.RawMessage(`"` + mark + `"`), "wrong types": json.RawMessage(`{"type":5,"properties":["` + mark + `"],"required":"` + mark + `","oneOf":{}}`),
		"wide schema": json.RawMessage(`{"properties":{` + strings.Repeat(`"`+mark+`":{"type":"string"},`, wide) + `"z":{}}}`),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, server := browseHostile(t)
			checkHostile(t, b, server, hostileServer(mark, schema), mark)
		})
	}
}

// changing is a server that becomes another one.
type changing struct{ atomic.Pointer[fake] }

func (c *changing) Do(ctx context.Context, r control.Request, into any) error {
	return c.Load().Do(ctx, r, into)
}

func (c *changing) Open(ctx context.Context, r control.Request) (Stream, error) {
	return c.Load().Open(ctx, r)
}

// browseHostile returns a browser for several servers, one after another.
func browseHostile(t *testing.T) (*browser, *changing) {
	t.Helper()
	server := new(changing)
	server.Store(newFake())
	b := browse(t, server).signIn()
	b.get("/calls") // starts the stream of calls
	return b, server
}

// checkHostile visits all pages of a server.
func checkHostile(t *testing.T, b *browser, server *changing, backend *fake, text string) {
	t.Helper()
	server.Store(backend)
	calls := &pipe{lines: make(chan any, 10)}
	backend.streams[control.Calls](calls)
	close(calls.lines)
	for row := range calls.lines { // as the stream of the first server, which goes on, would bring them
		b.console.feed.add(row.(control.Call))
	}
	check := func(path string, status int, page string) {
		t.Helper()
		if status >= 500 && !strings.HasPrefix(path, "/confirm") {
			t.Errorf("%.40q: %s: status %d: %.300s", text, path, status, page)
		}
		checkPage(t, fmt.Sprintf("%.40q: %s", text, path), page)
	}
	show := func(path string) {
		t.Helper()
		status, page := b.get(path)
		check(path, status, page)
	}
	short := text[:min(len(text), 200)]
	item := "/item?" + url.Values{"kind": {"tool"}, "address": {short}}.Encode()
	for _, path := range []string{
		"/", "/items", "/items?" + url.Values{"q": {short}, "kind": {short}}.Encode(), item, "/calls", "/calls?" + url.Values{"view": {"history"}, "name": {short}, "principal": {short}, "outcome": {short}}.Encode(),
		"/calls/" + url.PathEscape(short), "/policies?" + url.Values{"kind": {short}, "address": {short}, "q": {short}, "as": {"other"}, "as_id": {short}}.Encode(), "/policies?" + url.Values{"file": {short}}.Encode(), "/upstreams", "/access",
		"/confirm/accept?upstream=u&tool=t&digest=d", "/confirm/revoke_key?" + url.Values{"auth": {short}, "id": {short}}.Encode(), "/runs/" + url.PathEscape(short), "/?done=" + url.QueryEscape(short),
	} {
		show(path)
	}
	status, page, _ := b.post("/policies/explain", url.Values{"kind": {short}, "address": {short}, "json": {"{}"}})
	check("explain", status, page)
	status, page, _ = b.post("/policies/explain", url.Values{"kind": {short}, "address": {short}, "json": {short}, "as": {"other"}})
	check("explain what is no call", status, page)
	for _, edited := range []string{short, "policy \"p\" {}"} {
		status, page, _ = b.post("/policies/replay", url.Values{"file": {short}, "revision": {short}, "text": {edited}})
		check("replay", status, page)
	}
	status, page, _ = b.post("/item/try", url.Values{"mode": {"json"}, "json": {short}})
	check("try what is no JSON", status, page)
	status, page, _ = b.post("/item/try", url.Values{"arg/n": {short}, "arg/" + short: {short}, "edit": {"json"}})
	check("edit as JSON", status, page)
	status, page, at := b.post("/item/try", url.Values{"mode": {"json"}, "json": {"{}"}})
	check("run", status, page)
	if !strings.HasPrefix(at, "/runs/") {
		t.Fatalf("%.40q: the call did not start: %s", text, at)
	}
	id, _, _ := strings.Cut(at, "#")
	run := b.console.runs[len(b.console.runs)-1]
	for asked := false; !asked; { // until the question has arrived
		run.mu.Lock()
		changed := run.changed
		asked = run.ask != nil
		run.mu.Unlock()
		if !asked {
			<-changed
		}
	}
	show(id)
	status, page, _ = b.post(id+"/answer", url.Values{"asked": {"1"}, "action": {"decline"}})
	check("answer", status, page)
	_, events := b.get(id + "/events")
	if n := strings.Count("\n"+events, "\nevent: done\n"); n != 1 {
		t.Errorf("%.40q: the call is done %d times", text, n)
	}
	checkEvents(t, fmt.Sprintf("%.40q: %s/events", text, id), events)
	ended, end := context.WithCancel(t.Context())
	end()
	for path, handler := range map[string]http.HandlerFunc{"/overview/events": b.console.overviewEvents, "/calls/events": b.console.callEvents, "/upstreams/events": b.console.upstreamEvents} {
		w := httptest.NewRecorder() // gets the events that are sent before the stream ends
		handler(w, httptest.NewRequestWithContext(ended, http.MethodGet, path, nil))
		checkEvents(t, fmt.Sprintf("%.40q: %s", text, path), w.Body.String())
	}
	show(id)
}

// eventNames are the names of the events that the console sends.
var eventNames = []string{"ask", "call", "done", "failed", "feed", "health", "limits", "near", "problems", "result", "series", "status", "summary", "timeline", "upstreams"}

// checkEvents checks that a stream has only events of the console, and their data as pages.
func checkEvents(t *testing.T, where, stream string) {
	t.Helper()
	for event := range strings.SplitSeq(strings.TrimSuffix(stream, "\n\n"), "\n\n") {
		name, lines, _ := strings.Cut(event, "\n")
		name, named := strings.CutPrefix(name, "event: ")
		if !named || !slices.Contains(eventNames, name) {
			t.Errorf("%s: an event %.60q", where, event)
		}
		var data strings.Builder
		for line := range strings.SplitSeq(lines, "\n") {
			text, ok := strings.CutPrefix(line, "data: ")
			if !ok {
				t.Errorf("%s: a line %.60q in %s", where, line, name)
			}
			data.WriteString(text + "\n")
		}
		checkPage(t, where+": "+name, data.String())
	}
}

// elements and attributes are those of the templates.
var (
	elements = []string{
		"html", "head", "meta", "title", "link", "script", "body", "a", "header", "nav", "ul", "ol", "li", "button", "main", "h1", "h2", "h3", "h4", "p", "div", "section", "span", "strong", "code", "pre", "ins", "del",
		"table", "caption", "thead", "tbody", "tr", "th", "td", "form", "fieldset", "legend", "label", "input", "select", "datalist", "option", "textarea", "details", "summary", "dl", "dt", "dd", "figure", "figcaption", "time", "svg", "rect", "br", "article", "progress", "img", "audio", "noscript",
	}
	attributes = []string{
		"lang", "charset", "name", "content", "rel", "href", "src", "defer", "class", "id", "aria-label", "aria-labelledby", "aria-current", "aria-live", "aria-hidden", "aria-pressed", "role", "tabindex", "type", "method", "action", "for", "value", "selected", "checked", "open",
		"rows", "spellcheck", "placeholder", "inputmode", "autocomplete", "required", "hidden", "scope", "datetime", "viewbox", "preserveaspectratio", "x", "y", "width", "height", "max", "alt", "controls",
		"hx-ext", "hx-get", "hx-post", "hx-target", "hx-select", "hx-swap", "hx-trigger", "hx-push-url", "hx-disabled-elt", "hx-vals", "hx-sync", "list", "sse-connect", "sse-swap", "sse-close", "data-copy", "data-apply", "data-series",
	}
)

// checkPage checks that a page has only markup of the templates, and no characters that are not seen.
func checkPage(t *testing.T, where, page string) {
	t.Helper()
	if len(page) > 8<<20 {
		t.Errorf("%s: the page has %d bytes", where, len(page))
	}
	if i := strings.IndexFunc(page, unseen); i >= 0 {
		t.Errorf("%s: the page has %q", where, page[i:min(len(page), i+20)])
	}
	if !utf8.ValidString(page) {
		t.Errorf("%s: the page is not UTF-8", where)
	}
	doc, err := html.ParseWithOptions(strings.NewReader(page), html.ParseOptionEnableScripting(false))
	if err != nil {
		t.Fatal(err)
	}
	scripts := 0
	for n := range doc.Descendants() {
		switch {
		case n.Type == html.CommentNode:
			t.Errorf("%s: a comment %.60q", where, n.Data)
		case n.Type != html.ElementNode:
			continue
		case !slices.Contains(elements, n.Data):
			t.Errorf("%s: an element %.60q", where, n.Data)
		case n.Data == "script":
			if scripts++; n.FirstChild != nil {
				t.Errorf("%s: a script in the page", where)
			}
		}
		for _, a := range n.Attr {
			key := strings.ToLower(a.Key)
			switch {
			case !slices.Contains(attributes, key):
				t.Errorf("%s: an attribute %.60q of %s", where, a.Key, n.Data)
			case key == "href" || key == "action" || strings.HasPrefix(key, "hx-get") || key == "hx-post" || key == "sse-connect" || key == "src" && n.Data == "script":
				if !strings.HasPrefix(a.Val, "/") && !strings.HasPrefix(a.Val, "#") || strings.HasPrefix(a.Val, "//") {
					t.Errorf("%s: %s of %s leads to %.60q", where, key, n.Data, a.Val)
				}
			case key == "src" && !strings.HasPrefix(a.Val, "data:image/") && !strings.HasPrefix(a.Val, "data:audio/"):
				t.Errorf("%s: a source %.60q", where, a.Val)
			case strings.HasPrefix(key, "hx-") && strings.Contains(strings.ToLower(a.Val), mark):
				t.Errorf("%s: %s has text of the server", where, key)
			}
		}
	}
	if scripts > 4 {
		t.Errorf("%s: %d scripts", where, scripts)
	}
}

// TestVisible has characters of several categories that look like nothing or like a space.
func TestVisible(t *testing.T) {
	for _, hidden := range "\x1b\r\u00a0\u00ad\u034f\u115f\u200b\u2028\u202e\u2800\u3164\ufe0f\ufffe\U000e0041\U000e0100" {
		if got, want := string(visible([]byte("a"+string(hidden)+"b"))), fmt.Sprintf(`a\u{%X}b`, hidden); got != want {
			t.Errorf("U+%04X: got %q, want %q", hidden, got, want)
		}
	}
	const shown = "ß 漢 é \U0001f469\u200d\U0001f680 می\u200cخواهم\n\t."
	if got := string(visible([]byte(shown))); got != shown {
		t.Errorf("got %q, want %q", got, shown)
	}
	if got := string(visible([]byte("a\xffb"))); got != "a\ufffdb" {
		t.Errorf("an invalid byte is %q", got)
	}
}
