package serve

import (
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/internal/host/egress"
	"github.com/mcpd/mcpd/internal/language/grant"
)

// providers is how the documents of identity providers are read: by the doors that the
// requests of scripts pass. No proxy of the environment comes between, and each address
// is judged when it is dialled. A host that the operator names as an issuer may have a
// private one; a host that only a provider names, for its keys, may not.
type providers struct {
	snapshot func() *engine.Snapshot
	pool     *egress.Pool
}

const (
	// documentBytes bounds a document of a provider.
	documentBytes = 1 << 20
	// documentTime bounds the time of a request for one.
	documentTime = 10 * time.Second
)

func newProviders(snapshot func() *engine.Snapshot, log *slog.Logger) *providers {
	return &providers{snapshot: snapshot, pool: egress.New(egress.Options{Logger: log})}
}

// client follows no redirect, as the pool does not.
func (p *providers) client() *http.Client { return &http.Client{Transport: p, Timeout: documentTime} }

// RoundTrip sends a request to the host of its URL.
func (p *providers) RoundTrip(r *http.Request) (*http.Response, error) {
	g := grant.HTTP{Name: "provider", Hosts: []string{grant.HostOf(r.URL)}, MaxResponse: documentBytes}
	g.PrivateNetworks = p.named(g.Hosts[0])
	return p.pool.RoundTripper(g).RoundTrip(r)
}

// named reports whether the operator names a host, with its port, as an issuer.
func (p *providers) named(host string) bool {
	now := p.snapshot()
	if now == nil {
		return false
	}
	for _, b := range now.Auths() {
		if b.Tokens == nil {
			continue
		}
		if issuer, err := url.Parse(b.Tokens.Issuer); err == nil && grant.HostOf(issuer) == host {
			return true
		}
	}
	return false
}
