// Package httpguard is the outermost handler of every HTTP listener: each request
// passes it, whatever its method and path, before anything else looks at it.
//
// A [Gate] keeps browsers from being used against the server. It lets through
// what names one of the server's own hosts (so that no foreign name can be
// rebound to it), comes from no origin or an allowed one, and, where it posts,
// posts plain JSON of bounded size that arrives in bounded time. Refusals are
// the RFC's error JSON (section 14), or JSON-RPC errors on the paths that the
// options name. [CheckListen], [Listen], [Guard] and [Limit] do the same for the
// listener: where it may listen, how long it waits, and for how many.
//
// A [Budget] divides bytes or connections among clients (see [workqueue.Client]), so that none
// takes what others need: the bodies of requests, the answers that clients have not read,
// which pass an [Outlet], and the connections in use.
//
// The gate answers no preflight and sets no CORS header. It does not say who
// calls, and no route passes it in another way.
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
	// DefaultBodyTime is the default bound of the time that a body takes to arrive.
	DefaultBodyTimeout = 30 * time.Second
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
	BodyTimeout time.Duration
	// Bodies bounds the messages of all clients under way together, in bytes. 0
	// means [DefaultBudget].
	Bodies int64
	// RPC are the paths of JSON-RPC: what is refused there is told as its error,
	// elsewhere as that of the RFC (section 14).
	JSONRPCPaths []string
	// Returns reports whether a request is for a page to which other sites send
	// browsers, by the name of a host that whoever serves the page has judged. Nil
	// means that there is none.
	IsCallback func(*http.Request) bool
}

// Gate decides which requests may enter. It is safe for concurrent use.
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
}

// New returns a gate. The error names every host and origin that is malformed.
func New(o Options) (*Guard, error) {
	g := &Guard{origins: map[string]struct{}{}, maxBody: o.MaxBody, bodyTimeout: o.BodyTimeout, bodies: NewBudget(o.Bodies), jsonRPCPaths: o.JSONRPCPaths, isCallback: o.IsCallback}
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
func (g *Guard) Bodies() *Budget { return g.bodies }

// Wrap returns a handler that passes to next what may enter and refuses the
// rest. What next reads of a body that is too large ends with a
// [*http.MaxBytesError], of one that is too slow with a timeout, and where
// there is no room with [ErrCrowded].
func (g *Guard) Wrap(next http.Handler) http.Handler {
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
		body := g.limitBody(w, r, no != nil)
		defer body.release()
		g.serve(w, r, no, next)
		body.linger(w, r)
	})
}

func (g *Guard) serve(w http.ResponseWriter, r *http.Request, no *rejection, next http.Handler) {
	if no != nil {
		no.write(w, r, slices.Contains(g.jsonRPCPaths, r.URL.Path))
		return
	}
	next.ServeHTTP(w, r)
}

func (g *Guard) check(r *http.Request) *rejection {
	if g.isCallback(r) {
		return g.checkContent(r)
	}
	here := localEndpointOf(r)
	if !g.hosts.matches(r.Host, here) {
		return &unknownHost
	}
	listed := false
	if origins := r.Header["Origin"]; len(origins) > 0 {
		if len(origins) > 1 {
			return &unknownOrigin
		}
		if _, listed = g.origins[origins[0]]; !listed && !here.isOrigin(origins[0]) {
			return &unknownOrigin
		}
	}
	// An origin that the operator has listed is another site by nature.
	if !listed && crossSite(r.Header["Sec-Fetch-Site"]) {
		return &crossSiteRequest
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

// The error codes of the RFC (section 14) that the gate uses.
const (
	denied  = "POLICY_DENIED"
	invalid = "INVALID_INPUT"
)

// refusal is an answer that is ready to be sent: the error JSON of the RFC, or
// a JSON-RPC error without an id.
type rejection struct {
	status    int
	body, rpc []byte
}

var (
	unknownHost      = newRejection(http.StatusForbidden, denied, "the Host header is not a name of this server; the operator allows names with listen { hosts = [...] }")
	unknownOrigin    = newRejection(http.StatusForbidden, denied, "the Origin header is not allowed; the operator allows origins with listen { origins = [...] }")
	crossSiteRequest = newRejection(http.StatusForbidden, denied, "requests from other web sites are refused")
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

func (no *rejection) write(w http.ResponseWriter, r *http.Request, asRPC bool) {
	body := no.body
	if asRPC {
		body = no.rpc
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(no.status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(body) // a client that is gone needs no answer
	}
}
