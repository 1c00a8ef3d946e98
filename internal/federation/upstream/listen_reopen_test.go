package upstream

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// cut is a stream that ends unexpectedly.
type cut struct{}

func (cut) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

func TestListenStream_reopenAfterCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBrief("", 0)
		said := b.answer
		b.answer = func(m message) (io.Reader, bool) {
			body, ends := said(m)
			if m.method == methodListen {
				body = io.MultiReader(body, cut{})
			}
			return body, ends
		}
		if got := b.heard(t, lasts+lasts/2); !strings.Contains(got, `"n2"`) {
			t.Errorf("it offers %s", got)
		}
	})
}

// The client library would resume a stream after its last event, as with sessions, and end all
// calls if it cannot.
func TestListenStream_reopenWithEventIDs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBrief("id: 7\nretry: 1\n\n", http.StatusNotFound)
		if got := b.heard(t, lasts+lasts/2); !strings.Contains(got, `"n1"`) {
			t.Errorf("it offers %s", got)
		}
		if refused := b.refusals(); len(refused) > 0 {
			t.Errorf("it refuses %q", refused)
		}
	})
}

func TestListenStream_transientError(t *testing.T) {
	refuses := func(status int) func(*http.Request) (*http.Response, error) {
		return func(r *http.Request) (*http.Response, error) {
			return given(r, status, streamed, http.NoBody), nil
		}
	}
	for name, second := range map[string]func(*http.Request) (*http.Response, error){
		"it wants another token":      refuses(http.StatusUnauthorized),
		"it was slow":                 refuses(http.StatusRequestTimeout),
		"it was asked too often":      refuses(http.StatusTooManyRequests),
		"what stands before it fails": refuses(http.StatusBadGateway),
		"it did not answer": func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			b := newBrief("", 0)
			b.second = second
			if got := b.heard(t, 2*lasts); !strings.Contains(got, `"n3"`) {
				t.Errorf("%s: it offers %s", name, got)
			}
		})
	}
}

func TestListenStream_serverGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBrief("", 0)
		gone := errors.New("nobody listens there")
		b.second = func(*http.Request) (*http.Response, error) { return nil, gone }
		told := make(chan struct{}, 10)
		pool := NewPool(playedBy(b), func() { told <- struct{}{} }, nil)
		pool.SetTargets([]Target{{Name: "x", URL: "http://brief.test/mcp"}})
		began := time.Now()
		for pool.State("x").Err == nil {
			<-told
		}
		if state, took := pool.State("x"), time.Since(began); !errors.Is(state.Err, gone) || state.Listing != nil || took != lasts+firstListenDelay {
			t.Errorf("after %s it is %+v", took, state)
		}
		pool.Close()
		time.Sleep(lasts)
	})
}
