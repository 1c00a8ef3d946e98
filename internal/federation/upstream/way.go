package upstream

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// way is one in which a server over HTTP is spoken to.
type way struct{ url, transport string }

// ways returns those in which the server of a place may be spoken to, in the order of
// trying. One of revision 2024-11-05 takes no POST where it has its events (2025-11-25
// basic/transports, Backwards Compatibility). A URL without a path names a host: its
// server is where those of its kind are by custom, or at the root.
func (p Place) ways() (found []way) {
	all := []way{{p.URL, Streamable}, {p.URL, Events}}
	if at, err := url.Parse(p.URL); err == nil && at.Path == "" {
		all = []way{{beneath(*at, "/mcp"), Streamable}, {p.URL, Streamable}, {p.URL, Events}, {beneath(*at, "/sse"), Events}}
	}
	for _, w := range all {
		if p.Transport == "" || p.Transport == w.transport {
			found = append(found, w)
		}
	}
	return found
}

func beneath(at url.URL, path string) string {
	at.Path = path
	return at.String()
}

// unposted are the statuses by which a server says that nothing of it is at a URL
// (2026-07-28 basic/transports, Backward Compatibility).
var unposted = []int{http.StatusBadRequest, http.StatusNotFound, http.StatusMethodNotAllowed}

// find finds the way in which the server is spoken to: the one that is known first, and
// the next one only where the server says that it is not there.
func (l *Link) find(ctx context.Context, known way) error {
	ways := l.place.ways()
	if i := slices.Index(ways, known); i > 0 {
		ways = slices.Insert(slices.Delete(ways, i, i+1), 0, known)
	}
	var first error
	for _, w := range ways {
		t := &watched{link: l, next: l.options.Transport(l.place.Grant), plainEvents: w.transport == Events, life: ctx}
		err := l.shake(ctx, w.client(t))
		if err == nil {
			l.way = w
			return nil
		}
		if met := t.trouble.Load(); met != nil && l.wire.failure() == nil {
			err = met.error
		}
		if len(ways) > 1 {
			err = fmt.Errorf("%s at %s: %w", w.transport, w.url, err)
		}
		if first == nil {
			first = err
		}
		if !t.absent.Load() || ctx.Err() != nil || l.wire.failure() != nil {
			return err
		}
	}
	return first
}

// client is the transport of the client library.
func (w way) client(t *watched) mcp.Transport {
	web := &http.Client{Transport: t, CheckRedirect: stay}
	if w.transport == Events {
		return &mcp.SSEClientTransport{Endpoint: w.url, HTTPClient: web}
	}
	return &mcp.StreamableClientTransport{Endpoint: w.url, HTTPClient: web, MaxEventSize: -1}
}

// stay has no redirect followed.
func stay(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
