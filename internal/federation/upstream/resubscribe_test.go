package upstream

import (
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

// unlucky is a server of the newest revision whose connection breaks with the first request
// for a stream of what changes, before or behind its status.
type unlucky struct {
	*brief
	behind bool
}

func (u unlucky) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Header.Get(methodHeader) != methodListen || len(u.times()) > 0 {
		return u.brief.RoundTrip(r)
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.asked = append(u.asked, time.Now())
	if u.behind {
		return given(r, http.StatusOK, streamed, cut{}), nil
	}
	return nil, io.ErrUnexpectedEOF
}

func TestAResourceIsSubscribedToWhoseConnectionHasBrokenOnce(t *testing.T) {
	for name, behind := range map[string]bool{"before the status": false, "behind it": true} {
		synctest.Test(t, func(t *testing.T) {
			b := newBrief("", 0)
			b.can = `"resources":{"subscribe":true}`
			f := NewFleet(playedBy(unlucky{b, behind}), func() {}, func(string, string) {})
			f.Keep([]Place{{Name: "x", URL: "http://brief.test/mcp"}})
			f.Subscribe("x", "lab://note")
			time.Sleep(lasts / 2)
			if n := len(b.times()); n != 2 {
				t.Errorf("%s: within half an hour it is asked for %d times", name, n)
			}
			f.Close()
			time.Sleep(lasts)
		})
	}
}
