package upstream

import (
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpd/mcpd/internal/base/jsonguard"
	"github.com/mcpd/mcpd/internal/language/grant"
)

// refusing is an unreachable host that counts attempts.
type refusing int

func (r *refusing) RoundTrip(*http.Request) (*http.Response, error) {
	*r++
	return nil, errors.New("nobody is there")
}

func TestServer_reconnectBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var tries refusing
		var log strings.Builder
		pool := NewPool(Options{
			Transport: func(grant.HTTP) http.RoundTripper { return &tries }, Logger: slog.New(slog.NewTextHandler(&log, nil)),
		}, func() {}, nil)
		pool.SetTargets([]Target{{Name: "away", URL: "http://127.0.0.1/mcp"}})
		time.Sleep(24 * time.Hour)
		pool.Close()
		// A discovery and a handshake each time: after the first minutes once in 30 to 60 s.
		if n := int(tries) / 2; n < 24*60 || n > 24*120+10 {
			t.Errorf("%d attempts within a day", n)
		}
		if n := strings.Count(log.String(), "\n"); n < 11 || n > 12 {
			t.Errorf("%d log lines within a day", n)
		}
	})
}

func TestServer_refreshDebounce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{signals: newSignals()}
		l := &Conn{filter: newMessageFilter(jsonguard.Limits{}, InputPolicy{}, nil)}
		reads := func(during time.Duration) (n int) {
			for began := time.Now(); time.Since(began) < during; n++ {
				s.changed("notifications/tools/list_changed", "")
				if err := s.waitStale(t.Context(), l, 0); err != nil {
					t.Fatal(err)
				}
			}
			return n
		}
		if n := reads(time.Hour); n < 700 || n > 730 {
			t.Errorf("lists read %d times within an hour", n)
		}
		time.Sleep(6 * time.Second)
		if began := time.Now(); reads(1) != 1 || time.Since(began) != listDebounce {
			t.Errorf("after a pause they are read within %s", time.Since(began))
		}
	})
}

func TestServer_refreshAfterTTL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{signals: newSignals()}
		l := &Conn{filter: newMessageFilter(jsonguard.Limits{}, InputPolicy{}, nil)}
		for ttl, want := range map[time.Duration]time.Duration{time.Minute: time.Minute, time.Millisecond: minRefresh} {
			began := time.Now()
			if err := s.waitStale(t.Context(), l, ttl); err != nil || time.Since(began) != want {
				t.Errorf("lists with TTL %s are read again after %s: %v", ttl, time.Since(began), err)
			}
		}
	})
}

func TestHistory_refreshBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &Conn{filter: newMessageFilter(jsonguard.Limits{}, InputPolicy{}, nil)}
		for name, ttl := range map[string]time.Duration{"lists that hold for little": time.Millisecond, "lists that change": 0} {
			for _, row := range []struct {
				took time.Duration
				size int
				want time.Duration
			}{{time.Second, 0, 20 * time.Second}, {time.Minute, 0, maxRefreshBackoff}, {time.Second, 14_000_000, 140 * time.Second}} {
				s := &server{signals: newSignals()}
				for range 2 { // also the first time
					s.setRefreshBackoff(row.took, row.size)
					if ttl == 0 {
						s.changed("notifications/tools/list_changed", "")
					}
					began := time.Now()
					if err := s.waitStale(t.Context(), l, ttl); err != nil || time.Since(began) != row.want {
						t.Errorf("%s with duration %s: refreshed after %s: %v", name, row.took, time.Since(began), err)
					}
				}
			}
		}
	})
}

func TestHistory_reconnectDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, row := range []struct {
			took        time.Duration
			size        int
			since       time.Duration // time since the lists were read
			least, most time.Duration
		}{
			{0, 0, 0, minBackoff / 2, minBackoff},
			{10 * time.Second, 10_000, 0, minBackoff / 2, minBackoff}, // slow, and small
			{time.Second, largeList, 0, minBackoff / 2, minBackoff},
			{time.Second, 8_000_000, 0, 40 * time.Second, 40 * time.Second},
			{time.Second, 8_000_000, 50 * time.Second, 15 * time.Second, 15 * time.Second},
			{time.Second, 8_000_000, 80 * time.Second, minBackoff / 2, minBackoff},
			{time.Second, maxListed, 0, maxBackoff, maxBackoff},
		} {
			s := &server{}
			s.setRefreshBackoff(row.took, row.size)
			time.Sleep(row.since)
			if pause := s.reconnectDelay(minBackoff); pause < row.least || pause > row.most {
				t.Errorf("%d bytes that have taken %s: %s later it is left alone for %s", row.size, row.took, row.since, pause)
			}
		}
	})
}

// talking is an endless body of events.
type talking struct{}

func (*talking) Read(p []byte) (int, error) {
	return copy(p, "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}\n\n"), nil
}

func (*talking) Close() error { return nil }

func TestMessageFilter_endlessNotifications(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newMessageFilter(jsonguard.Limits{Bytes: 1000}, InputPolicy{}, nil)
		c := newCall(1, Request{Method: MethodTool}, nil, func(error) {})
		stream := newSSEFilter(&talking{}, w, &stream{call: c}, false)
		began := time.Now()
		_, err := io.Copy(io.Discard, stream)
		if !errors.Is(err, errOversized) || stream.eventCount != maxEvents+1 {
			t.Errorf("after %d events the stream ends with %v", stream.eventCount, err)
		}
		if took := time.Since(began); took < 8*time.Second || took > 10*time.Second {
			t.Errorf("%d events read within %s", stream.eventCount, took)
		}
	})
}

func TestSSEFilter_maxHandshakeEvents(t *testing.T) {
	stream := newSSEFilter(&talking{}, newMessageFilter(jsonguard.Limits{Bytes: 1000}, InputPolicy{}, nil), &stream{}, false)
	if _, err := io.Copy(io.Discard, stream); !errors.Is(err, errOversized) || stream.eventCount != maxHandshakeEvents+1 {
		t.Errorf("after %d events the stream ends with %v", stream.eventCount, err)
	}
}
