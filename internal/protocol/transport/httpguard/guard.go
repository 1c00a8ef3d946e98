// Package httpguard is the outermost handler of every HTTP listener: each
// request passes it first, regardless of method and path.
//
// A [Guard] protects the server against attacks through browsers. It accepts
// requests for one of the server's own hosts (against DNS rebinding), without
// an origin or from an allowed one. A body must be JSON, of bounded size and
// time. The guard rejects other requests with the error JSON of the RFC
// (section 14), or with JSON-RPC errors on the configured paths. [CheckListen],
// [Listen], [ConfigureServer] and [LimitListener] do the same for the listener:
// its addresses, its timeouts and its clients.
//
// A [Budget] divides bytes or connections among clients (see
// [workqueue.Client]), so that no client uses up what others need: request
// bodies, unread responses, which pass a [BudgetWriter], and the connections in use.
//
// The guard answers no preflight request and sets no CORS header. It does not
// authenticate callers, and no route bypasses it.
package httpguard

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	// DefaultMaxBody is the default bound of a request body, in bytes.
	DefaultMaxBody = 4 << 20
	// DefaultBodyTimeout is the default time for a request body to arrive.
	DefaultBodyTimeout = 30 * time.Second
)

// Options configure a [Guard].
type Options struct {
	// Hosts are names that requests may carry in addition to loopback names. An
	// entry "name:port" covers this port, "name" the listener's own port and
	// none. IPv6 addresses are in brackets.
	Hosts []string
	// Origins are allowed in addition to the server's own origin on loopback, in
	// the form of browsers: "https://app.example.com", with a port unless it is
	// the default.
	Origins []string
	// MaxBody bounds a request body, in bytes. 0 means [DefaultMaxBody].
	MaxBody int64
	// BodyTimeout bounds the time for a body to arrive. 0 means
	// [DefaultBodyTimeout].
	BodyTimeout time.Duration
	// Bodies bounds the messages of all clients together, in bytes. 0 means
	// [DefaultBudget].
	Bodies int64
	// JSONRPCPaths are the paths of JSON-RPC: errors there are JSON-RPC errors,
	// and errors of the RFC (section 14) elsewhere.
	JSONRPCPaths []string
	// IsCallback reports whether a request is for a page to which other sites
	// redirect browsers, such as an OAuth callback. The page itself checks the
	// host. Nil means that there is none.
	IsCallback func(*http.Request) bool
	// IsPage reports whether a request is for a page for people. The page itself checks the origin
	// of its forms, which are not JSON. Nil means that there is none.
	IsPage func(*http.Request) bool
}

// Guard decides which requests are accepted. It is safe for concurrent use.
type Guard struct {
	hosts        hosts
	origins      map[string]struct{}
	maxBody      int64
	bodyTimeout  time.Duration
	tooLarge     rejection
	bodies       *Budget
	timer        *bodyTimer
	jsonRPCPaths []string
	isCallback   func(*http.Request) bool
	isPage       func(*http.Request) bool
}

// New returns a guard. The error names every invalid host and origin.
func New(o Options) (*Guard, error) {
	g := &Guard{origins: map[string]struct{}{}, maxBody: o.MaxBody, bodyTimeout: o.BodyTimeout, bodies: NewBudget(o.Bodies), jsonRPCPaths: o.JSONRPCPaths, isCallback: o.IsCallback, isPage: o.IsPage}
	if g.isCallback == nil {
		g.isCallback = func(*http.Request) bool { return false }
	}
	if g.maxBody <= 0 {
		g.maxBody = DefaultMaxBody
	}
	if g.bodyTimeout <= 0 {
		g.bodyTimeout = DefaultBodyTimeout
	}
	g.timer = newBodyTimer(g.bodyTimeout)
	g.tooLarge = newRejection(http.StatusRequestEntityTooLarge, invalid, fmt.Sprintf("the request body is longer than %d bytes", g.maxBody))
	if g.isPage == nil {
		g.isPage = func(*http.Request) bool { return false }
	}
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

// Bodies returns the budget of bodies, for transports that receive messages
// outside request bodies.
func (g *Guard) Bodies() *Budget { return g.bodies }

// Wrap returns a handler that passes accepted requests to next and rejects
// others. Reading a body in next fails with [*http.MaxBytesError] if it is too
// large. It fails with a timeout if it is too slow, and with [ErrOverBudget]
// without room.
func (g *Guard) Wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.wrapped(w, r, g.check(r), next)
	})
}

func (g *Guard) wrapped(w http.ResponseWriter, r *http.Request, rej *rejection, next http.Handler) {
	if len(r.TransferEncoding) > 0 {
		// A proxy that uses a Content-Length beside it would take what follows
		// for a part of this body (RFC 9112 section 6.1).
		w.Header()["Connection"] = []string{"close"}
	}
	if r.Body == nil || r.Body == http.NoBody {
		g.serve(w, r, rej, next)
		return
	}
	body := g.limitBody(w, r, rej != nil)
	defer body.release()
	g.serve(w, r, rej, next)
	body.linger(w, r)
}

// WrapTrusted is Wrap for requests that another server has accepted for its hosts and origins, and sends
// over a connection that proves it. Their bodies have the same bounds, and share the budget.
func (g *Guard) WrapTrusted(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.wrapped(w, r, g.checkContent(r), next)
	})
}

func (g *Guard) serve(w http.ResponseWriter, r *http.Request, rej *rejection, next http.Handler) {
	if rej != nil {
		rej.write(w, r, slices.Contains(g.jsonRPCPaths, r.URL.Path))
		return
	}
	next.ServeHTTP(w, r)
}

func (g *Guard) check(r *http.Request) *rejection {
	if g.isCallback(r) {
		return g.checkContent(r)
	}
	local := localEndpointOf(r)
	if !g.hosts.matches(r.Host, local) {
		return &unknownHost
	}
	if g.isPage(r) {
		return g.checkBody(r)
	}
	listed := false
	if origins := r.Header["Origin"]; len(origins) > 0 {
		if len(origins) > 1 {
			return &unknownOrigin
		}
		if _, listed = g.origins[origins[0]]; !listed && !local.isOrigin(origins[0]) {
			return &unknownOrigin
		}
	}
	// An origin listed by the operator is a different site by definition.
	if !listed && crossSite(r.Header["Sec-Fetch-Site"]) {
		return &crossSiteRequest
	}
	return g.checkContent(r)
}

// crossSite reports whether the browser marks the request as cross-site (Fetch
// Metadata, section 2.3).
func crossSite(values []string) bool {
	for _, v := range values {
		if strings.Contains(strings.ToLower(v), "cross-site") {
			return true
		}
	}
	return false
}

// The error codes of the RFC (section 14) that the guard uses.
const (
	denied  = "POLICY_DENIED"
	invalid = "INVALID_INPUT"
)

// rejection is an encoded response: the error JSON of the RFC, or a JSON-RPC
// error without an id.
type rejection struct {
	status    int
	body, rpc []byte
}

var (
	unknownHost      = newRejection(http.StatusForbidden, denied, "the Host header is not a name of this server; the operator allows names with listen { hosts = [...] }")
	unknownOrigin    = newRejection(http.StatusForbidden, denied, "the Origin header is not allowed; the operator allows origins with listen { origins = [...] }")
	crossSiteRequest = newRejection(http.StatusForbidden, denied, "requests from other web sites are rejected")
	encodedBody      = newRejection(http.StatusUnsupportedMediaType, invalid, "an encoded body is not accepted: send it without Content-Encoding")
	notJSON          = newRejection(http.StatusUnsupportedMediaType, invalid, "Content-Type must be application/json")
)

func newRejection(status int, code, message string) rejection {
	text, _ := json.Marshal(message) // a string always encodes
	return rejection{
		status: status, body: []byte(`{"error":"` + code + `","message":` + string(text) + `}`),
		rpc: []byte(`{"jsonrpc":"2.0","error":{"code":-32600,"message":` + string(text) + `}}`),
	}
}

func (rej *rejection) write(w http.ResponseWriter, r *http.Request, asRPC bool) {
	body := rej.body
	if asRPC {
		body = rej.rpc
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(rej.status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(body) // a client that is gone needs no response
	}
}
