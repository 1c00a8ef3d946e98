package httpguard

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

const (
	// DefaultMaxBody is the default bound of a request body, in bytes.
	DefaultMaxBody = 4 << 20
	// DefaultBodyTime is the default bound of the time that a body takes to arrive.
	DefaultBodyTime = 30 * time.Second
)

// Options configure a [Gate].
type Options struct {
	// Hosts are names that requests may carry beside the loopback ones. As
	// "name:port" an entry covers that port, as "name" the listener's own port
	// and none. IPv6 addresses stand in brackets.
	Hosts []string
	// Origins are allowed beside the server's own on loopback, as a browser
	// writes them: "https://app.example.com", with a port where it is not the
	// default one.
	Origins []string
	// MaxBody bounds a request body, in bytes. 0 means [DefaultMaxBody].
	MaxBody int64
	// BodyTime bounds the time that a body takes to arrive. 0 means
	// [DefaultBodyTime].
	BodyTime time.Duration
	// Bodies bounds the messages of all clients under way together, in bytes. 0
	// means [DefaultBudget].
	Bodies int64
	// RPC are the paths of JSON-RPC: what is refused there is told as its error,
	// elsewhere as that of the RFC (section 14).
	RPC []string
	// Returns reports whether a request is for a page to which other sites send
	// browsers, by the name of a host that whoever serves the page has judged. Nil
	// means that there is none.
	Returns func(*http.Request) bool
}

// Gate decides which requests may enter. It is safe for concurrent use.
type Gate struct {
	hosts    hosts
	origins  map[string]struct{}
	maxBody  int64
	bodyTime time.Duration
	tooLarge refusal
	bodies   *Budget
	clock    *clock
	rpc      []string
	returns  func(*http.Request) bool
}

// New returns a gate. The error names every host and origin that is malformed.
func New(o Options) (*Gate, error) {
	g := &Gate{origins: map[string]struct{}{}, maxBody: o.MaxBody, bodyTime: o.BodyTime, bodies: NewBudget(o.Bodies), rpc: o.RPC, returns: o.Returns}
	if g.returns == nil {
		g.returns = func(*http.Request) bool { return false }
	}
	if g.maxBody <= 0 {
		g.maxBody = DefaultMaxBody
	}
	if g.bodyTime <= 0 {
		g.bodyTime = DefaultBodyTime
	}
	g.clock = newClock(g.bodyTime)
	g.tooLarge = refuse(http.StatusRequestEntityTooLarge, invalid, fmt.Sprintf("the request body is longer than %d bytes", g.maxBody))
	var errs []error
	for _, h := range o.Hosts {
		errs = append(errs, g.hosts.allow(h))
	}
	for _, s := range o.Origins {
		origin, err := parseOrigin(s)
		errs = append(errs, err)
		g.origins[origin] = struct{}{}
	}
	return g, errors.Join(errs...)
}

// Bodies returns the budget of bodies, for transports whose messages are no bodies of
// requests.
func (g *Gate) Bodies() *Budget { return g.bodies }

// Wrap returns a handler that passes to next what may enter and refuses the
// rest. What next reads of a body that is too large ends with a
// [*http.MaxBytesError], of one that is too slow with a timeout, and where
// there is no room with [ErrCrowded].
func (g *Gate) Wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		no := g.check(r)
		if len(r.TransferEncoding) > 0 {
			// A proxy that believed a Content-Length beside it would take what
			// follows for a part of this body (RFC 9112 section 6.1).
			w.Header()["Connection"] = []string{"close"}
		}
		if r.Body == nil || r.Body == http.NoBody {
			g.serve(w, r, no, next)
			return
		}
		body := g.bound(w, r, no != nil)
		defer body.leave()
		g.serve(w, r, no, next)
		body.linger(w, r)
	})
}

// serve passes a request on, unless it is refused.
func (g *Gate) serve(w http.ResponseWriter, r *http.Request, no *refusal, next http.Handler) {
	if no != nil {
		no.write(w, r, slices.Contains(g.rpc, r.URL.Path))
		return
	}
	next.ServeHTTP(w, r)
}

// check returns why a request may not enter, or nil.
func (g *Gate) check(r *http.Request) *refusal {
	if g.returns(r) {
		return g.checkContent(r)
	}
	here := listenerOf(r)
	if !g.hosts.cover(r.Host, here) {
		return &foreignHost
	}
	listed := false
	if origins := r.Header["Origin"]; len(origins) > 0 {
		if len(origins) > 1 {
			return &foreignOrigin
		}
		if _, listed = g.origins[origins[0]]; !listed && !here.isOrigin(origins[0]) {
			return &foreignOrigin
		}
	}
	// An origin that the operator has listed is another site by nature.
	if !listed && crossSite(r.Header["Sec-Fetch-Site"]) {
		return &foreignSite
	}
	return g.checkContent(r)
}

// crossSite reports whether a browser says that another site sent the request
// (Fetch Metadata, section 2.3).
func crossSite(values []string) bool {
	for _, v := range values {
		if strings.Contains(strings.ToLower(v), "cross-site") {
			return true
		}
	}
	return false
}
