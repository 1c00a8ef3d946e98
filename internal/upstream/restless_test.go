package upstream

import (
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpd/mcpd/internal/grant"
	"github.com/mcpd/mcpd/internal/jsongate"
)

// refusing is a host that cannot be reached, and counts how often that is tried.
type refusing int

func (r *refusing) RoundTrip(*http.Request) (*http.Response, error) {
	*r++
	return nil, errors.New("nobody is there")
}

func TestAServerThatStaysAwayIsTriedAndToldOfEverMoreRarely(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var tries refusing
		var log strings.Builder
		f := NewFleet(Options{
			Transport: func(grant.HTTP) http.RoundTripper { return &tries }, Logger: slog.New(slog.NewTextHandler(&log, nil)),
		}, func() {}, nil)
		f.Keep([]Place{{Name: "away", URL: "http://127.0.0.1/mcp"}})
		time.Sleep(24 * time.Hour)
		f.Close()
		// A discovery and a handshake each time: after the first minutes once in 30 s to 60 s.
		if n := int(tries) / 2; n < 24*60 || n > 24*120+10 {
			t.Errorf("within a day it is tried %d times", n)
		}
		if n := strings.Count(log.String(), "\n"); n < 11 || n > 12 {
			t.Errorf("within a day the log gets %d lines", n)
		}
	})
}

func TestListsThatChangeWithoutAnEndAreReadEverMoreRarely(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{stale: make(chan struct{}, 1)}
		l := &Link{wire: newWire(jsongate.Limits{}, nil)}
		reads := func(during time.Duration) (n int) {
			for began := time.Now(); time.Since(began) < during; n++ {
				s.changed("notifications/tools/list_changed", "")
				if err := s.await(t.Context(), l, 0); err != nil {
					t.Fatal(err)
				}
			}
			return n
		}
		if n := reads(time.Hour); n < 700 || n > 730 {
			t.Errorf("within an hour the lists are read %d times", n)
		}
		time.Sleep(6 * time.Second)
		if began := time.Now(); reads(1) != 1 || time.Since(began) != quiet {
			t.Errorf("after a while of rest they are read within %s", time.Since(began))
		}
	})
}
