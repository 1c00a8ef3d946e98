package rest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/protocol/mcp"
)

func TestCapabilities_emptyList(t *testing.T) {
	f := &fake{info: mcp.Info{Name: `a "name"`}, list: func(identity.Caller) mcp.List { return mcp.List{} }}
	w := f.send("GET", CapabilitiesPath, nil, "")
	if want := `{"server":"a \"name\"","version":"","tools":[]}`; w.Code != 200 || w.Body.String() != want {
		t.Errorf("status %d, body %s", w.Code, w.Body)
	}
}

func TestCapabilities_conditional(t *testing.T) {
	f := customers(t)
	etag := f.send("GET", CapabilitiesPath, nil, "").Header().Get("ETag")
	rows := []struct {
		header []string
		want   int
	}{
		{nil, 200},
		{[]string{etag}, 304},
		{[]string{"W/" + etag}, 304},
		{[]string{`"other", ` + etag}, 304},
		{[]string{`"other"`, etag}, 304},
		{[]string{"*"}, 304},
		{[]string{`"other"`}, 200},
		{[]string{""}, 200},
		{[]string{etag[1 : len(etag)-1]}, 200},
	}
	for _, r := range rows {
		for _, method := range []string{"GET", "HEAD"} {
			w := f.send(method, CapabilitiesPath, http.Header{"If-None-Match": r.header}, "")
			if w.Code != r.want || w.Code == 304 && w.Body.Len() > 0 || w.Header().Get("ETag") != etag {
				t.Errorf("%s %q: status %d, %d bytes, ETag %s", method, r.header, w.Code, w.Body.Len(), w.Header().Get("ETag"))
			}
		}
	}
}

func TestCapabilities_etag(t *testing.T) {
	f := customers(t)
	seen := map[string]string{}
	note := func(what string) {
		etag := f.send("GET", CapabilitiesPath, nil, "").Header().Get("ETag")
		if other, ok := seen[etag]; ok {
			t.Errorf("%s has the ETag of %s", what, other)
		}
		seen[etag] = what
	}
	note("first list")
	f.info.Version = "1.0.1"
	note("other version")
	f.info.Name = "other"
	note("other name")
	f.list = func(identity.Caller) mcp.List { return mcp.List{Hash: "h2"} }
	note("other list")
}

func TestCapabilities_privateList(t *testing.T) {
	f := customers(t)
	list := f.list
	f.list = func(c identity.Caller) mcp.List {
		l := list(c)
		l.Private = true
		return l
	}
	if got := f.send("GET", CapabilitiesPath, nil, "").Header().Get("Cache-Control"); got != "private, no-cache" {
		t.Errorf("Cache-Control = %q", got)
	}
}

func TestCapabilities_caller(t *testing.T) {
	f := customers(t)
	list := f.list
	var asked identity.Caller
	f.list = func(c identity.Caller) mcp.List { asked = c; return list(c) }
	f.send("GET", CapabilitiesPath, http.Header{"X-Agent-Id": {"bot"}}, "")
	if asked.Agent.AgentID != "bot" || asked.Principal.ID != "anonymous" || asked.Agent.RequestID != "req-1" {
		t.Errorf("backend call: %+v", asked)
	}
}

func TestPageCache(t *testing.T) {
	var j pageCache
	info := mcp.Info{Name: "s"}
	for i := range 10 * maxPages {
		hash := fmt.Sprint(i)
		first := j.page(info, mcp.List{Hash: hash})
		if again := j.page(info, mcp.List{Hash: hash}); &again.body[0] != &first.body[0] {
			t.Error("a page was encoded twice")
		}
		if len(j.pages) > maxPages {
			t.Fatalf("%d pages are cached, want at most %d", len(j.pages), maxPages)
		}
	}
}

// manyTools returns a list of n tools.
func manyTools(tb testing.TB, n int) mcp.List {
	tb.Helper()
	list := mcp.List{Hash: fmt.Sprint(n)}
	for i := range n {
		tool, err := mcp.NewTool(mcp.ToolInfo{Name: fmt.Sprintf("tool_%d", i), InputSchema: json.RawMessage(`{"type":"object","properties":{"a":{"type":"string"}}}`)})
		if err != nil {
			tb.Fatal(err)
		}
		list.Entries = append(list.Entries, tool)
	}
	return list
}

func TestCapabilities_allocations(t *testing.T) {
	cost := func(n int) float64 {
		list := manyTools(t, n)
		f := &fake{list: func(identity.Caller) mcp.List { return list }}
		h := New(f, Options{})
		r := httptest.NewRequest("GET", CapabilitiesPath, nil)
		r.Header.Set("X-Request-Id", "req-1")
		return testing.AllocsPerRun(50, func() { h.ServeHTTP(discard{http.Header{}}, r) })
	}
	if few, many := cost(10), cost(1000); many > 20 {
		t.Errorf("%v allocations for 10 tools, %v for 1000", few, many)
	}
}

// discard is a response writer that discards everything.
type discard struct{ header http.Header }

func (d discard) Header() http.Header         { return d.header }
func (d discard) Write(p []byte) (int, error) { return len(p), nil }
func (d discard) WriteHeader(int)             {}

func (discard) SetWriteDeadline(time.Time) error { return nil }

func BenchmarkCapabilities_1000Tools(b *testing.B) {
	list := manyTools(b, 1000)
	h := New(&fake{list: func(identity.Caller) mcp.List { return list }}, Options{})
	r := httptest.NewRequest("GET", CapabilitiesPath, nil)
	b.ReportAllocs()
	for b.Loop() {
		h.ServeHTTP(discard{http.Header{}}, r)
	}
}
