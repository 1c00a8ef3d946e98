package egress

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/mcpd/mcpd/internal/language/grant"
	"github.com/mcpd/mcpd/scripting"
)

func TestStreamingTransport(t *testing.T) {
	next := make(chan string)
	s := newSite(t, false, func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintln(w, r.Header.Get("Authorization"), r.Header.Get("X-Mine"))
		for word := range next {
			w.(http.Flusher).Flush()
			fmt.Fprintln(w, word)
		}
	})
	s.grant.Headers = []grant.Header{{Name: "Authorization", Value: grant.Value{Parts: []grant.Part{{Secret: "token"}}}}}
	out, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	out.Header.Set("X-Mine", "mine")
	go func() {
		defer close(next)
		next <- "one"
	}()
	resp, err := s.pool.StreamingTransport(s.grant).RoundTrip(out)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	for _, want := range []string{canary + " mine", "one"} {
		if lines.Scan(); lines.Text() != want {
			t.Errorf("got %q, want %q", lines.Text(), want)
		}
	}
	if out.Header.Get("Authorization") != "" {
		t.Error("the request of the caller has the secret in it")
	}
}

func TestStreamingTransport_checks(t *testing.T) {
	s := newSite(t, false, func(w http.ResponseWriter, _ *http.Request) {
		http.Redirect(w, &http.Request{}, "http://127.0.0.1:1/", http.StatusFound)
	})
	closed := New(Options{})
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		pool   *Pool
		grant  grant.HTTP
		method string
		code   string
	}{
		"another host":          {s.pool, grant.HTTP{Hosts: []string{"example.com:443"}}, "GET", scripting.NotGranted},
		"another method":        {s.pool, s.grant, "POST", scripting.NotGranted},
		"a private network":     {s.pool, grant.HTTP{Hosts: []string{s.host()}}, "GET", scripting.Denied},
		"a pool that is closed": {closed, s.grant, "GET", scripting.Unavailable},
	} {
		out, err := http.NewRequestWithContext(t.Context(), c.method, s.URL, strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.pool.StreamingTransport(c.grant).RoundTrip(out)
		if fault, ok := errors.AsType[*scripting.HostError](err); !ok || fault.Code != c.code {
			t.Errorf("%s: got %v, want %s", name, err, c.code)
		}
	}
	out, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := s.pool.StreamingTransport(s.grant).RoundTrip(out)
	if err != nil || resp.StatusCode != http.StatusFound {
		t.Fatalf("a redirect is followed: %v", err)
	}
	_ = resp.Body.Close()
}

func TestStreamingTransport_unreadableSecret(t *testing.T) {
	s := newSite(t, false, func(http.ResponseWriter, *http.Request) { t.Error("it was sent") })
	s.grant.Headers = []grant.Header{{Name: "X-Key", Value: grant.Value{Parts: []grant.Part{{Secret: "token"}}}}}
	for value, want := range map[string]string{
		"":                 `the header "X-Key": secret "token": environment variable TOKEN: it is not set`,
		canary + "\r\nX: ": `the header "X-Key": it contains a control character`,
	} {
		s.grant.Name = want
		s.pool.options.Resolve = func(context.Context, string) (string, error) {
			if value == "" {
				return "", errors.New(`secret "token": environment variable TOKEN: it is not set`)
			}
			return value, nil
		}
		out, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.pool.StreamingTransport(s.grant).RoundTrip(out)
		if err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
		if code(err) != scripting.Unavailable {
			t.Errorf("scripts get the code %s", code(err))
		}
	}
	if log := s.log.String(); log != "" {
		t.Errorf("the error is also logged here: %s", log)
	}
}
