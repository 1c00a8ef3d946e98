package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestRemote_followsNoRedirect(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("the other server got %s %s", r.Method, r.URL)
	}))
	defer other.Close()
	named := httptest.NewServer(http.RedirectHandler(other.URL, http.StatusTemporaryRedirect))
	defer named.Close()
	err := remoteOf(named.URL).exchange(t.Context(), http.MethodPost, "/mcp/execute", []byte(`{}`), new(answer))
	if err == nil || !strings.Contains(err.Error(), "answered 307 Temporary Redirect") {
		t.Errorf("got %v", err)
	}
}

func TestRemote_redactsPassword(t *testing.T) {
	for _, target := range []string{"http://me:hunter2@127.0.0.1:1", "http://me:hunter2@[::1"} {
		err := remoteOf(target).exchange(t.Context(), http.MethodGet, "", nil, new(answer))
		if err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", target, err)
		}
	}
}
