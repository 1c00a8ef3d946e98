package serve

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"time"

	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/auth/authn"
	"github.com/mcpd/mcpd/internal/base/httpheader"
	"github.com/mcpd/mcpd/internal/protocol/transport/httpguard"
)

// ConsolePath is the path of the console of a listener. The paths of its pages start with it.
const ConsolePath = "/console/"

// Console has the pages that a console block in mcpd.hcl serves at [ConsolePath].
type Console interface {
	// Open returns the pages for a caller who has signed in. Each caller has separate pages, so that
	// no caller sees what another one did. The front checks the origin of each POST, and the pages
	// check a token in its form. Close is called when the session ends.
	Open(Operator) (ConsolePages, error)
	// SignIn answers a caller who has not signed in, with a form that posts the member credential to
	// its own address. It also serves what that page loads. problem is empty at first.
	SignIn(w http.ResponseWriter, r *http.Request, status int, problem string)
}

// ConsolePages are the pages for one caller.
type ConsolePages interface {
	http.Handler
	Close()
}

// Operator is a caller of the console, with its rights in the console block as it is now.
type Operator struct {
	Principal identity.Principal
	// Base is the path that the paths of all pages start with, without a slash at its end. It is a
	// secret of the session unless the connection uses TLS.
	Base string
	// SignOut ends the session.
	SignOut func()
	front   *Front
}

// MayOperate reports whether the caller may call items and change something.
func (o Operator) MayOperate(ctx context.Context) bool {
	block := o.front.engine.Inside().Catalog().Console
	if block == nil {
		return false
	}
	return o.front.permitted(block.MayOperate(ctx, o.Principal, time.Now()))
}

// MayActAs reports whether the caller may operate as another principal.
func (o Operator) MayActAs(ctx context.Context, other identity.Principal) bool {
	block := o.front.engine.Inside().Catalog().Console
	if block == nil {
		return false
	}
	return o.front.permitted(block.MayActAs(ctx, o.Principal, other, time.Now()))
}

// permitted logs the error of a condition of the console block.
func (f *Front) permitted(may bool, err error) bool {
	if err != nil {
		f.engine.Logger().Warn("evaluate console block", slog.String("error", err.Error()))
	}
	return may
}

// Bounds of the sessions of the console. A session beyond them ends the oldest of those that were never
// used, or else the oldest one. So a program that sends a credential with each request, and no cookie,
// does not end the session of a browser.
const (
	consoleLifetime       = 8 * time.Hour
	maxConsoleSessions    = 64
	maxPrincipalSessions  = 8
	maxSignIn             = 16 << 10 // bytes of the form
	consoleAccessInterval = time.Second
)

// consoleSessions serves the console: it authenticates each request as other routes do. Browsers
// send no header with a credential, so a form takes it once, and the session holds it from then on.
type consoleSessions struct {
	front *Front
	pages Console
	who   authn.Middleware

	mu   sync.Mutex
	byID map[[sha256.Size]byte]*consoleSession // by the hash of the cookie
}

// consoleSession is a session of a caller.
type consoleSession struct {
	key       [sha256.Size]byte
	base      string // as in Operator, and the path of the cookie
	principal identity.Principal
	// credential is empty if the connection authenticates the caller, or each request.
	credential string
	began      time.Time
	pages      ConsolePages
	expiry     *time.Timer // ends the session, with the credential, if no request does
	// used is set by a sign-in with the form, or by the first request with the cookie. It is guarded by
	// the mutex of the sessions.
	used    bool
	closing sync.Once
}

// endsBefore reports whether the session ends before another one if there are too many.
func (s *consoleSession) endsBefore(other *consoleSession) bool {
	switch {
	case other == nil:
		return true
	case s.expired() != other.expired():
		return s.expired()
	case s.used != other.used:
		return !s.used
	default:
		return s.began.Before(other.began)
	}
}

func (s *consoleSession) expired() bool { return time.Since(s.began) >= consoleLifetime }

func (s *consoleSession) close() {
	s.closing.Do(func() {
		s.expiry.Stop()
		s.pages.Close()
	})
}

func newConsoleSessions(f *Front, pages Console, who authn.Middleware) *consoleSessions {
	return &consoleSessions{front: f, pages: pages, who: who, byID: map[[sha256.Size]byte]*consoleSession{}}
}

// isConsole reports whether the console serves the path. The console checks its own forms and their
// origin, as its pages may have any host name of the server.
func (s *consoleSessions) isConsole(r *http.Request) bool {
	return s != nil && strings.HasPrefix(r.URL.Path, ConsolePath)
}

func (s *consoleSessions) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.front.engine.Inside().Catalog().Console == nil {
		s.closeAll()
		notFound(w, r)
		return
	}
	if r.Method == http.MethodPost && !httpguard.IsSameOrigin(r) {
		http.Error(w, "the request comes from another site", http.StatusForbidden)
		return
	}
	if r.URL.Path+"/" == ConsolePath {
		http.Redirect(w, r, ConsolePath, http.StatusMovedPermanently)
		return
	}
	session := s.find(r)
	credential := ""
	switch {
	case session != nil:
		credential = session.credential
	case r.Method == http.MethodPost:
		if credential = postedCredential(w, r); credential == "" {
			s.pages.SignIn(w, r, http.StatusBadRequest, "Enter an API key or a token.")
			return
		}
	}
	if credential != "" && r.Header["Authorization"] == nil && r.Header["X-Api-Key"] == nil {
		r.Header.Set("Authorization", "Bearer "+credential)
	}
	principal, _, access, err := s.who.Authenticate(r)
	switch {
	case err != nil:
		status, problem := s.who.Reject(w.Header(), r, err)
		if session == nil && r.Method != http.MethodPost {
			problem = "" // the first page
		}
		s.end(session)
		s.pages.SignIn(w, r, status, problem)
		return
	case principal.Kind == identity.KindAnonymous:
		s.end(session)
		s.pages.SignIn(w, r, http.StatusUnauthorized, "")
		return
	case session != nil && !reflect.DeepEqual(session.principal, principal):
		s.end(session)
		s.pages.SignIn(w, r, http.StatusUnauthorized, "The credential has changed. Sign in again.")
		return
	case !s.allowed(r.Context(), principal):
		s.end(session)
		s.pages.SignIn(w, r, http.StatusForbidden, "The server gives you no access to the console.")
		return
	}
	if _, ok := httpguard.Admit(r, &principal); !ok {
		http.Error(w, httpguard.TooManyInUse, http.StatusServiceUnavailable)
		return
	}
	if session == nil {
		if session, err = s.begin(w, r, principal, credential); err != nil {
			s.front.engine.Logger().Error("open console", slog.String("error", err.Error()), slog.String("request_id", httpheader.RequestIDOf(r.Header)))
			http.Error(w, "the console cannot be opened", http.StatusInternalServerError)
			return
		}
		if r.Method == http.MethodPost {
			http.Redirect(w, r, session.base+"/", http.StatusSeeOther)
			return
		}
		r = withBase(r, session.base)
	}
	s.serve(w, r, session, access)
}

func (s *consoleSessions) allowed(ctx context.Context, p identity.Principal) bool {
	block := s.front.engine.Inside().Catalog().Console
	return block != nil && s.front.permitted(block.MayLook(ctx, p, time.Now()))
}

// errConsoleEnded ends the requests of a session without access.
var errConsoleEnded = errors.New("the session of the console has ended")

// serve serves a request, and ends it when the caller loses access: live pages stay open for long.
func (s *consoleSessions) serve(w http.ResponseWriter, r *http.Request, session *consoleSession, access *authn.Access) {
	ctx, cancel := context.WithCancelCause(r.Context())
	var watching sync.WaitGroup
	defer watching.Wait()
	defer cancel(nil)
	watching.Go(func() {
		tick := time.NewTicker(consoleAccessInterval)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			if access.Check() != nil || !s.allowed(ctx, session.principal) || !s.isOpen(session) {
				s.end(session)
				cancel(errConsoleEnded)
				return
			}
		}
	})
	session.pages.ServeHTTP(w, r.WithContext(ctx))
	if !s.isOpen(session) { // such as after a sign-out
		session.close()
	}
}

// postedCredential returns the credential in the form of a sign-in; "" if there is none.
func postedCredential(w http.ResponseWriter, r *http.Request) string {
	r.Body = http.MaxBytesReader(w, r.Body, maxSignIn)
	if r.URL.Path != ConsolePath || r.ParseForm() != nil {
		return ""
	}
	return strings.TrimSpace(r.PostForm.Get("credential"))
}

// begin starts a session and sets its cookie.
func (s *consoleSessions) begin(w http.ResponseWriter, r *http.Request, p identity.Principal, credential string) (*consoleSession, error) {
	id := rand.Text()
	cookie := http.Cookie{Name: consoleCookie(r), Value: id, MaxAge: int(consoleLifetime.Seconds()), HttpOnly: true, SameSite: http.SameSiteStrictMode}
	session := &consoleSession{key: sha256.Sum256([]byte(id)), principal: p, credential: credential, began: time.Now(), used: r.Method == http.MethodPost}
	if onLoopback(r) {
		session.base = ConsolePath + secretPrefix + rand.Text()
		cookie.Path = session.base
	} else {
		session.base = strings.TrimSuffix(ConsolePath, "/")
		cookie.Path, cookie.Secure = "/", true
	}
	var err error
	session.pages, err = s.pages.Open(Operator{Principal: p, Base: session.base, front: s.front, SignOut: func() { s.remove(session) }})
	if err != nil {
		return nil, err
	}
	session.expiry = time.AfterFunc(consoleLifetime, func() { s.end(session) })
	var ended []*consoleSession
	s.mu.Lock()
	s.byID[session.key] = session
	for {
		var own int
		var oldest, oldestOwn *consoleSession
		for _, other := range s.byID {
			mine := sameCaller(other.principal, p)
			if mine {
				own++
			}
			if other == session {
				continue
			}
			if other.endsBefore(oldest) {
				oldest = other
			}
			if mine && other.endsBefore(oldestOwn) {
				oldestOwn = other
			}
		}
		switch {
		case own > maxPrincipalSessions:
			oldest = oldestOwn
		case len(s.byID) <= maxConsoleSessions && (oldest == nil || !oldest.expired()):
			oldest = nil
		}
		if oldest == nil {
			break
		}
		delete(s.byID, oldest.key)
		ended = append(ended, oldest)
	}
	s.mu.Unlock()
	for _, old := range ended {
		old.close()
	}
	http.SetCookie(w, &cookie)
	return session, nil
}

// secretPrefix starts the secret in the paths of a session without TLS: /console/s-SECRET/items. No
// page has such a name.
const secretPrefix = "s-"

// pagePath returns the path of a page without ConsolePath and without a secret: /items.
func pagePath(path string) string {
	path = strings.TrimPrefix(path, ConsolePath)
	if strings.HasPrefix(path, secretPrefix) {
		_, path, _ = strings.Cut(path, "/")
	}
	return "/" + path
}

// withBase returns a copy of a request for the same page below another base.
func withBase(r *http.Request, base string) *http.Request {
	changed, address := *r, *r.URL
	if address.Path = base + pagePath(address.Path); address.RawPath != "" {
		address.RawPath = base + pagePath(address.RawPath)
	}
	changed.URL = &address
	return &changed
}

func sameCaller(a, b identity.Principal) bool {
	return a.ID == b.ID && a.Kind == b.Kind && a.Issuer == b.Issuer
}

// consoleCookie returns the name of the cookie. Browsers send the cookies of a host to all of its
// ports. Over TLS, only the host itself can set and get a cookie whose name starts with __Host-, which
// belongs to all paths. Without TLS, other users of the machine have ports of this host too, so the
// path of the cookie is a secret of the session.
func consoleCookie(r *http.Request) string {
	if onLoopback(r) {
		return "mcpd-console"
	}
	return "__Host-mcpd-console"
}

// onLoopback reports whether the browser reaches the server on its own machine and without TLS.
func onLoopback(r *http.Request) bool {
	host := r.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	ip := net.ParseIP(strings.Trim(host, "[]"))
	return r.TLS == nil && (host == "localhost" || ip != nil && ip.IsLoopback())
}

// find returns the session of a request; nil if it has none.
func (s *consoleSessions) find(r *http.Request) *consoleSession {
	for _, cookie := range r.CookiesNamed(consoleCookie(r)) {
		s.mu.Lock()
		session := s.byID[sha256.Sum256([]byte(cookie.Value))]
		if session != nil && !strings.HasPrefix(r.URL.Path, session.base+"/") {
			session = nil
		}
		if session != nil {
			session.used = true
		}
		s.mu.Unlock()
		switch {
		case session == nil:
		case !session.expired():
			return session
		default:
			s.end(session)
		}
	}
	return nil
}

// isOpen reports whether a session has not ended.
func (s *consoleSessions) isOpen(session *consoleSession) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.byID[session.key] == session && !session.expired()
}

// remove makes a session invalid.
func (s *consoleSessions) remove(session *consoleSession) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.byID, session.key)
}

// end ends a session; nil is none.
func (s *consoleSessions) end(session *consoleSession) {
	if session != nil {
		s.remove(session)
		session.close()
	}
}

// closeAll ends all sessions.
func (s *consoleSessions) closeAll() {
	s.mu.Lock()
	all := s.byID
	s.byID = map[[sha256.Size]byte]*consoleSession{}
	s.mu.Unlock()
	for _, session := range all {
		session.close()
	}
}
