package console

import (
	"crypto/rand"
	"crypto/subtle"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcpd/mcpd/internal/protocol/transport/httpguard"
)

// Lifetimes of the token of the first request and of a session.
const (
	tokenLifetime   = 5 * time.Minute
	sessionLifetime = 12 * time.Hour
)

// maxForm is the maximum size of the body of a request.
const maxForm = 1 << 20

// contentSecurityPolicy is the Content-Security-Policy of all responses. Sounds of results are data: URLs.
const contentSecurityPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; media-src data:; connect-src 'self'; " +
	"form-action 'self'; frame-ancestors 'none'; base-uri 'none'"

// equalSecrets compares secrets in constant time.
func equalSecrets(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// oneTimeToken is a token that is valid until its first use.
type oneTimeToken struct {
	mu    sync.Mutex
	text  string // "" after its use
	until time.Time
}

// take reports whether text is the token. If it is, the token is used up.
func (t *oneTimeToken) take(text string, now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.text == "" || !equalSecrets(text, t.text) || !now.Before(t.until) {
		return false
	}
	t.text = ""
	return true
}

// NewToken replaces the token by a new one, and returns the path of the first request with it. The
// token is valid once, for five minutes. The session lasts until the token is used.
//
// The path of each page starts with a secret of the console. A browser sends cookies of
// a host to all of its ports, but only with requests below the path of the cookie. So a server of
// another user on another port, which does not know the path, does not get the cookie.
func (c *Console) NewToken() string {
	c.token.mu.Lock()
	defer c.token.mu.Unlock()
	c.token.text, c.token.until = rand.Text(), c.options.Now().Add(tokenLifetime)
	return c.base + "/?token=" + url.QueryEscape(c.token.text)
}

// session is a browser that has used the token. It does not change.
type session struct {
	id    string // in the cookie
	csrf  string // in each form
	until time.Time
}

// startSession replaces the session by a new one.
func (c *Console) startSession() *session {
	s := &session{id: rand.Text(), csrf: rand.Text(), until: c.options.Now().Add(sessionLifetime)}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.session = s
	return s
}

// sessionOf returns the session of a request, nil if it has none.
func (c *Console) sessionOf(r *http.Request) *session {
	c.mu.Lock()
	s := c.session
	c.mu.Unlock()
	if c.options.Base != "" {
		return s
	}
	if s == nil || !c.options.Now().Before(s.until) {
		return nil
	}
	for _, cookie := range r.CookiesNamed(cookieName) {
		if equalSecrets(cookie.Value, s.id) {
			return s
		}
	}
	return nil
}

// cookieName is the name of the cookie of a session.
const cookieName = "mcpd_console"

// ServeHTTP checks a request and passes it to the page that it names.
func (c *Console) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	secureHeaders(w.Header())
	if c.options.Base != "" {
		c.serveListener(w, r)
		return
	}
	secret, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	switch {
	case !slices.Contains(c.options.Hosts, r.Host): // such as a name that an attacker points here
		http.Error(w, "The host name is not one of the console.", http.StatusMisdirectedRequest)
		return
	case !equalSecrets("/"+secret, c.base):
		http.Error(w, "Open the address that mcpd console prints, or press o in mcpd dev.", http.StatusNotFound)
		return
	case r.Method == http.MethodGet, r.Method == http.MethodHead:
	case r.Method != http.MethodPost:
		w.Header().Set("Allow", "GET, HEAD, POST")
		http.Error(w, "The console takes GET and POST.", http.StatusMethodNotAllowed)
		return
	case !httpguard.IsSameOrigin(r):
		http.Error(w, "The request comes from another site.", http.StatusForbidden)
		return
	}
	path := strings.TrimPrefix(r.URL.Path, c.base)
	if path == "" {
		c.redirect(w, r, "/")
		return
	}
	if strings.HasPrefix(path, "/assets/") || path == startPath { // they are the same in every mcpd
		c.serve(w, r)
		return
	}
	if token := r.URL.Query().Get("token"); token != "" && path == "/" && r.Method == http.MethodGet {
		c.signIn(w, r, token)
		return
	}
	s := c.sessionOf(r)
	if s == nil {
		http.Error(w, "No session. Run mcpd console and open the address that it prints, or press o in mcpd dev.", http.StatusUnauthorized)
		return
	}
	if _, ok := httpguard.Admit(r, nil); !ok { // its connection is in use
		http.Error(w, httpguard.TooManyInUse, http.StatusServiceUnavailable)
		return
	}
	if r.Method == http.MethodPost && !c.readForm(w, r, s) {
		return
	}
	c.serve(w, r)
}

// serve passes a request that has been checked to the page that it names.
func (c *Console) serve(w http.ResponseWriter, r *http.Request) {
	if query := r.URL.Query(); query.Has("escaped") { // of a form
		readFields(query)
		r.URL.RawQuery = query.Encode()
	}
	http.StripPrefix(c.base, c.mux).ServeHTTP(w, r)
}

// signIn starts a session for the request with the token. It redirects to an address without it.
func (c *Console) signIn(w http.ResponseWriter, r *http.Request, token string) {
	if !c.token.take(token, c.options.Now()) {
		http.Error(w, "This address was used before, or is older than five minutes. Run mcpd console again, or press o in mcpd dev.", http.StatusUnauthorized)
		return
	}
	http.SetCookie(w, &http.Cookie{
		Name: cookieName, Value: c.startSession().id, Path: c.base, MaxAge: int(sessionLifetime.Seconds()),
		HttpOnly: true, SameSite: http.SameSiteStrictMode,
	})
	c.redirect(w, r, startPath)
}

// startPath is the page after the sign-in. It opens the overview itself: a browser that another
// program sent here sends the cookie of the session only with a request of a page of the console.
const startPath = "/start"

func (c *Console) start(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = io.WriteString(w, `<!doctype html><html lang="en"><head><title>mcpd console</title><link rel="icon" href="data:,"><meta http-equiv="refresh" content="0; url=`+c.base+`/"></head><body><p><a href="`+c.base+`/">Open the console</a></p></body></html>`)
}

// readForm reads the body of a POST, and checks that it has the CSRF token of the session. It
// writes the response if not.
func (c *Console) readForm(w http.ResponseWriter, r *http.Request, s *session) bool {
	if kind, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";"); kind != "application/x-www-form-urlencoded" {
		http.Error(w, "The body must be a form.", http.StatusUnsupportedMediaType)
		return false
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if err := r.ParseForm(); err != nil {
		http.Error(w, "The form is longer than 1 MiB, or is not valid.", http.StatusRequestEntityTooLarge)
		return false
	}
	if !equalSecrets(r.PostForm.Get("csrf"), s.csrf) {
		http.Error(w, "The form is not one of this session. Load the page again.", http.StatusForbidden)
		return false
	}
	readFields(r.PostForm)
	return true
}

// secureHeaders sets the headers of all responses. The referrer policy sends no path to another port
// or site. It keeps the Origin header of forms, which no-referrer would remove.
func secureHeaders(h http.Header) {
	for name, value := range map[string]string{
		"Content-Security-Policy":      contentSecurityPolicy,
		"X-Content-Type-Options":       "nosniff",
		"X-Frame-Options":              "DENY",
		"Referrer-Policy":              "same-origin",
		"Cross-Origin-Opener-Policy":   "same-origin",
		"Cross-Origin-Resource-Policy": "same-origin",
		"Permissions-Policy":           "camera=(), geolocation=(), microphone=()",
		"Cache-Control":                "no-store",
	} {
		h.Set(name, value)
	}
}
