package telemetry_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/mcpd/mcpd/internal/base/observe"
	"github.com/mcpd/mcpd/internal/ops/telemetry"
)

func TestHandler_formats(t *testing.T) {
	tel := start(t, telemetry.Options{})
	for accept, want := range map[string]string{
		"": "text/plain; version=0.0.4",
		"application/openmetrics-text; version=1.0.0": "application/openmetrics-text; version=1.0.0",
	} {
		r := httptest.NewRequest(http.MethodGet, "/metrics", nil)
		r.Header.Set("Accept", accept)
		r.Header.Set("Accept-Encoding", "gzip")
		w := httptest.NewRecorder()
		tel.Handler().ServeHTTP(w, r)
		if got := w.Header().Get("Content-Type"); w.Code != http.StatusOK || !strings.HasPrefix(got, want) || w.Header().Get("Content-Encoding") != "" {
			t.Errorf("Accept %q: %d, %v", accept, w.Code, w.Header())
		}
	}
}

func TestHandler_methods(t *testing.T) {
	tel := start(t, telemetry.Options{})
	w := httptest.NewRecorder()
	tel.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/metrics", nil))
	if w.Code != http.StatusMethodNotAllowed || w.Header().Get("Allow") != "GET, HEAD" {
		t.Errorf("%d, %v", w.Code, w.Header())
	}
}

func TestHandler_maxScrapes(t *testing.T) {
	tel := start(t, telemetry.Options{})
	here, release := make(chan struct{}, 10), make(chan struct{})
	var once sync.Once
	tel.Metrics().Collect(func() observe.Stats {
		once.Do(func() { here <- struct{}{} })
		<-release
		return observe.Stats{}
	})
	handler := tel.Handler()
	codes := make(chan int, 10)
	get := func() {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
		codes <- w.Code
	}
	for range 5 {
		go get()
	}
	<-here
	// Four requests wait for the numbers; the fifth gets a response.
	if code := <-codes; code != http.StatusServiceUnavailable {
		t.Errorf("fifth request: status %d", code)
	}
	close(release)
	for range 4 {
		if code := <-codes; code != http.StatusOK {
			t.Errorf("waiting request: status %d", code)
		}
	}
}

func TestMetrics_statsPanic(t *testing.T) {
	tel := start(t, telemetry.Options{})
	tel.Metrics().Collect(func() observe.Stats { panic("x") })
	tel.Metrics().CallEnded("tool", "t", "client", "ok", 0)
	if got := scrape(t, tel)[`mcpd_calls_total{kind="tool",name="",outcome="ok",via="client"}`]; got != "1" {
		t.Errorf("%q calls", got)
	}
}
