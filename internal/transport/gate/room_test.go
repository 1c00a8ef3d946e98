package gate

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestBodiesUnderWayHaveOneBoundTogether keeps one body under way while others
// come: what is over the bound gets no room until the first is done.
func TestBodiesUnderWayHaveOneBoundTogether(t *testing.T) {
	h := newGate(t, Options{Room: 10}).Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.ReadAll(r.Body); errors.Is(err, ErrCrowded) {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		w.WriteHeader(passed)
	}))
	send := func(body io.Reader) int {
		r := httptest.NewRequest(http.MethodPost, "http://localhost/", body)
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Code
	}
	body, slow := io.Pipe()
	first := make(chan int)
	go func() { first <- send(body) }()
	for _, piece := range []string{"1234567", "8"} { // when the second is read, the first has its room
		if _, err := io.WriteString(slow, piece); err != nil {
			t.Fatal(err)
		}
	}
	for _, step := range []struct {
		body string
		want int
	}{{"1234", 503}, {"12", passed}, {"1234", 503}} {
		if got := send(strings.NewReader(step.body)); got != step.want {
			t.Errorf("%q beside another body: status %d, want %d", step.body, got, step.want)
		}
	}
	slow.Close()
	if got := <-first; got != passed {
		t.Errorf("the first body: status %d", got)
	}
	if got := send(strings.NewReader("1234567890")); got != passed {
		t.Errorf("room was not given back: status %d", got)
	}
}
