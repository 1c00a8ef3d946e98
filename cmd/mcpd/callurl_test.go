package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestTheArgumentsOfACallGoToTheNamedServerAlone(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("another server got %s %s", r.Method, r.URL)
	}))
	defer other.Close()
	named := httptest.NewServer(http.RedirectHandler(other.URL, http.StatusTemporaryRedirect))
	defer named.Close()
	err := exchange(t.Context(), http.MethodPost, named.URL+"/mcp/execute", []byte(`{}`), new(answer))
	if err == nil || !strings.Contains(err.Error(), "answered 307 Temporary Redirect") {
		t.Errorf("got %v", err)
	}
}

func TestNoPasswordInAURLIsPrinted(t *testing.T) {
	for _, target := range []string{"http://me:hunter2@127.0.0.1:1", "http://me:hunter2@[::1"} {
		err := exchange(t.Context(), http.MethodGet, target, nil, new(answer))
		if err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", target, err)
		}
	}
}
