package egress

import (
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/internal/language/grant"
	"github.com/mcpd/mcpd/scripting"
)

func TestDo(t *testing.T) {
	for _, secure := range []bool{false, true} {
		t.Run(fmt.Sprint("secure ", secure), func(t *testing.T) {
			s := newSite(t, secure, echo)
			s.grant.Methods = []string{"POST"}
			s.grant.Paths = []string{"/a*"}
			s.grant.Headers = []grant.Header{{Name: "authorization", Value: grant.Value{Parts: []grant.Part{
				{Literal: "Basic "},
				{Base64: &grant.Value{Parts: []grant.Part{{Literal: "user:"}, {Secret: "token"}}}},
			}}}}
			got, fault := s.do(fields{"method": "post", "url": "/a%20b/c?q=%2F&r", "headers": fields{"x-mine": " v "}, "body": "h\u00e9"})
			if fault != "" {
				t.Fatal(fault)
			}
			want := fields{
				"status": 418.0, "url": s.URL + "/a%20b/c?q=%2F&r",
				"headers": map[string]any{"content-type": "text/plain", "x-twice": "a, b", "content-length": got["headers"].(map[string]any)["content-length"]},
				"body": `POST /a%20b/c?q=%2F&r HTTP/` + map[bool]string{false: "1", true: "2"}[secure] + ` "h\u00e9" Authorization=[Basic ` +
					base64.StdEncoding.EncodeToString([]byte("user:"+canary)) + `] X-Mine=[v] User-Agent=[mcpd] Content-Length=[3]`,
			}
			want["body"] = strings.ReplaceAll(want["body"].(string), `\u00e9`, "é")
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("answer (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDo_bodies(t *testing.T) {
	bytes := func(body []byte) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(body) }
	}
	rows := []struct {
		name    string
		handler http.HandlerFunc
		request fields
		member  string
		want    string
	}{
		{"text", bytes([]byte("é \x00")), fields{"url": "/"}, "body", "é \x00"},
		{"nothing", bytes(nil), fields{"url": "/"}, "body", ""},
		{"what is not UTF-8", bytes([]byte{0xff, 0}), fields{"url": "/"}, "body64", "/wA="},
		{"HEAD", bytes([]byte("x")), fields{"url": "/", "method": "HEAD"}, "body", ""},
		{"base64 sent", func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) }, fields{"url": "/", "method": "POST", "body64": "/wA="}, "body64", "/wA="},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			s := newSite(t, false, r.handler)
			s.grant.Methods = []string{"GET", "HEAD", "POST"}
			got, fault := s.do(r.request)
			if fault != "" || got[r.member] != r.want {
				t.Errorf("got %v %s, want %s %q", got, fault, r.member, r.want)
			}
		})
	}
}

func TestDo_compressedBody(t *testing.T) {
	s := newSite(t, false, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Accept-Encoding") != "" {
			t.Error("we ask for compression")
		}
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write([]byte{0x1f, 0x8b, 8})
	})
	got, fault := s.do(fields{"url": "/"})
	if fault != "" || got["body64"] != "H4sI" {
		t.Errorf("got %v %s", got, fault)
	}
}

func TestPool_closeIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(Options{})
		open := func() int {
			p.mu.Lock()
			defer p.mu.Unlock()
			return len(p.clients)
		}
		g := grant.HTTP{Hosts: []string{"a.example:443"}}
		first, release, _ := p.lease(g)
		time.Sleep(10 * idleTimeout)
		if open() != 1 {
			t.Fatal("a client in use was closed")
		}
		release()
		time.Sleep(idleTimeout - time.Second)
		second, release, _ := p.lease(g)
		if first != second {
			t.Error("a client was not used again")
		}
		release()
		time.Sleep(idleTimeout - time.Second)
		if open() != 1 {
			t.Error("a client was closed before its time")
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if open() != 0 {
			t.Error("an unused client stays open")
		}
		a, releaseA, _ := p.lease(g)
		b, releaseB, _ := p.lease(grant.HTTP{Hosts: g.Hosts, MaxResponse: 1})
		if a == b {
			t.Error("grants that differ share a client")
		}
		releaseB()
		if err := p.Close(); err != nil {
			t.Error(err)
		}
		releaseA()
		if _, _, ok := p.lease(g); ok {
			t.Error("a closed Pool leases clients")
		}
		if _, err := p.Do(t.Context(), g, []byte(`{"url":"https://a.example/"}`)); code(err) != scripting.Unavailable {
			t.Errorf("a closed Pool: %v", err)
		}
	})
}

func TestPool_reusesConnections(t *testing.T) {
	seen := map[string]bool{}
	s := newSite(t, false, func(_ http.ResponseWriter, r *http.Request) { seen[r.RemoteAddr] = true })
	for range 5 {
		if _, fault := s.do(fields{"url": "/"}); fault != "" {
			t.Fatal(fault)
		}
	}
	if len(seen) != 1 {
		t.Errorf("%d connections were made, want 1", len(seen))
	}
}

func TestPool_concurrent(t *testing.T) {
	s := newSite(t, false, echo)
	var all sync.WaitGroup
	for i := range 30 {
		all.Go(func() {
			g := s.grant
			g.Name = fmt.Sprint(i % 3)
			for range 5 {
				if _, err := s.pool.Do(t.Context(), g, payload(t, s.URL+"/")); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	s.pool.mu.Lock()
	defer s.pool.mu.Unlock()
	if n := len(s.pool.clients); n != 3 {
		t.Errorf("%d open clients, want one for each of 3 grants", n)
	}
}
