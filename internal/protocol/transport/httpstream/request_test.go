package httpstream

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/auth/authn"
	"github.com/mcpd/mcpd/internal/protocol/mcp"
)

func TestAuthenticate_rejected(t *testing.T) {
	guard := authn.Middleware{Authenticator: func(*http.Request) (identity.Principal, error) {
		return identity.Principal{}, &authn.AuthError{Status: http.StatusForbidden, Challenge: `Bearer error="insufficient_scope"`}
	}}
	w := httptest.NewRecorder()
	_, in := Authenticate(w, httptest.NewRequest(http.MethodPost, "/mcp", nil), guard)
	if challenge := w.Header().Get("WWW-Authenticate"); in || w.Code != http.StatusForbidden || challenge != `Bearer error="insufficient_scope"` {
		t.Errorf("accepted: %v, status %d, challenge %q", in, w.Code, challenge)
	}
}

func TestCheckAccess_revoked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var revoked error
		guard := authn.Middleware{Authenticator: func(*http.Request) (identity.Principal, error) {
			return identity.Principal{ID: "ci", Kind: identity.KindKey}, revoked
		}}
		w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/mcp", nil)
		caller, _ := Authenticate(w, r, guard)
		revoked = errors.New("the key was revoked")
		time.Sleep(time.Second)
		if CheckAccess(w, r, guard, caller.Access) || w.Code != http.StatusUnauthorized {
			t.Errorf("status %d", w.Code)
		}
	})
}

// TestResponse_streamAccessRevoked: the stream sends no further message and no
// comment.
func TestResponse_streamAccessRevoked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var revoked atomic.Bool
		guard := authn.Middleware{Authenticator: func(*http.Request) (identity.Principal, error) {
			if revoked.Load() {
				return identity.Principal{}, errors.New("the key was revoked")
			}
			return identity.Principal{ID: "ci", Kind: identity.KindKey}, nil
		}}
		w := httptest.NewRecorder()
		caller, _ := Authenticate(w, httptest.NewRequest(http.MethodPost, "/mcp", nil), guard)
		var ended atomic.Int64
		o := Options{Bounds: Bounds{WriteTimeout: time.Second, KeepAlive: 15 * time.Second}, Access: caller.Access}
		a := NewResponse(w, o, func() { ended.Add(1) })
		a.Start()
		revoked.Store(true)
		time.Sleep(16 * time.Second)
		a.Finish(mcp.Reply{})
		if ended.Load() != 1 || w.Body.Len() != 0 {
			t.Errorf("the request was cancelled %d times, and %q was sent", ended.Load(), w.Body)
		}
	})
}

func TestFinish_accessRevoked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var revoked error
		guard := authn.Middleware{Authenticator: func(*http.Request) (identity.Principal, error) {
			return identity.Principal{ID: "ci", Kind: identity.KindKey}, revoked
		}}
		w := httptest.NewRecorder()
		caller, _ := Authenticate(w, httptest.NewRequest(http.MethodPost, "/mcp", nil), guard)
		a := NewResponse(w, Options{Bounds: Bounds{WriteTimeout: time.Second, KeepAlive: time.Second}, Access: caller.Access}, func() {})
		revoked = errors.New("the key was revoked")
		time.Sleep(time.Second)
		a.Finish(mcp.Refuse(mcp.Unavailable, "the answer"))
		if w.Code != http.StatusUnauthorized || strings.Contains(w.Body.String(), "the answer") {
			t.Errorf("response: %d %s", w.Code, w.Body)
		}
	})
}
