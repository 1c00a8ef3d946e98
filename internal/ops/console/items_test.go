package console

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/mcpd/mcpd/internal/ops/control"
)

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
