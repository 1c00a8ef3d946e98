package host_test

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/mcpd/mcpd/internal/host"
	"github.com/mcpd/mcpd/internal/host/oauth"
	"github.com/mcpd/mcpd/internal/host/secrets"
	"github.com/mcpd/mcpd/internal/language/grant"
)

// tokenLab is a call with a grant for one local host, which receives tokens of another.
type tokenLab struct {
	*lab
	desk, crm *httptest.Server
	asked     atomic.Int64
	client    oauth.Client
}

func newTokenLab(t *testing.T, desk http.HandlerFunc) *tokenLab {
	t.Helper()
	l := &tokenLab{lab: &lab{}}
	l.desk = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		l.asked.Add(1)
		desk(w, r)
	}))
	t.Cleanup(l.desk.Close)
	l.crm = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "you said "+r.Header.Get("Authorization"))
	}))
	t.Cleanup(l.crm.Close)
	brokers := host.NewBrokers(host.Options{
		LookupEnv: func(name string) (string, bool) { return password, name == "CLIENT" },
		Logger:    slog.New(slog.NewTextHandler(&l.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
	t.Cleanup(func() {
		if err := brokers.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	l.client = oauth.Client{TokenURL: l.desk.URL + "/token", ID: "mcpd", Secret: "client", PrivateNetworks: true}
	l.RunHost = &host.RunHost{Brokers: brokers, CallerKind: "tool", Name: "t", ID: "c-1", Grants: &host.Grants{HTTP: map[string]grant.HTTP{"crm": {
		Name: "crm", Hosts: []string{strings.TrimPrefix(l.crm.URL, "http://")}, PrivateNetworks: true,
		Headers: []grant.Header{{Name: "Authorization", Value: grant.Value{Parts: []grant.Part{{Literal: "Bearer "}, {Secret: "token"}}}}},
	}}}}
	l.load()
	return l
}

// load sets the definitions, like a reload.
func (l *tokenLab) load() {
	l.Secrets.Set([]secrets.Definition{{Name: "client", Env: "CLIENT"}, {Name: "token", OAuth: &l.client}})
}

// get sends a request with the token and returns the answer for the script.
func (l *tokenLab) get(t *testing.T) string {
	t.Helper()
	answer := l.do(t, "http.request", fmt.Sprintf(`{"grant":"crm","url":%q}`, l.crm.URL+"/"))
	var decoded struct{ Body string }
	if json.Unmarshal([]byte(answer), &decoded) != nil {
		return answer
	}
	return decoded.Body
}

func TestToken_redacted(t *testing.T) {
	l := newTokenLab(t, nil)
	l.desk.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		number := l.asked.Add(1)
		if id, secret, ok := r.BasicAuth(); id != "mcpd" || secret == "" || !ok {
			http.Error(w, "who asks?", http.StatusUnauthorized)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"access_token":"token-number-%d","token_type":"bearer","expires_in":3600}`, number)
	})
	for _, asked := range []int64{1, 1} {
		if got := l.get(t); got != "you said Bearer [secret:token]" || l.asked.Load() != asked {
			t.Fatalf("got %q after %d requests", got, l.asked.Load())
		}
	}
	l.load()
	if got := l.get(t); got != "you said Bearer [secret:token]" || l.asked.Load() != 2 {
		t.Fatalf("after a reload, got %q after %d requests", got, l.asked.Load())
	}
	said := "token-number-1 token-number-2 " + password
	if got := l.Secrets.Redact(said); got != "[secret:token] [secret:token] [secret:client]" {
		t.Errorf("shown as %s", got)
	}
}

func TestToken_unauthorized(t *testing.T) {
	l := newTokenLab(t, nil)
	l.desk.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"access_token":"token-number-%d","token_type":"bearer","expires_in":3600}`, l.asked.Add(1))
	})
	l.crm.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer token-number-2" {
			w.WriteHeader(http.StatusUnauthorized)
		}
	})
	for range 2 {
		l.get(t) // the second call triggers a new token, and may be sent before it arrives
	}
	token := ""
	for token != "token-number-2" {
		var err error
		if token, err = l.Secrets.Resolve(t.Context(), "token"); err != nil || t.Context().Err() != nil {
			t.Fatal(token, err)
		}
	}
	l.get(t)
	if l.asked.Load() != 2 {
		t.Errorf("%d requests for tokens, want 2", l.asked.Load())
	}
}

// A token server may return the same token again, and the redactor must not alter it when it is
// read.
func TestToken_unchanged(t *testing.T) {
	l := newTokenLab(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"access_token":"the-same-token","token_type":"bearer"}`)
	})
	for range 3 {
		l.get(t)
		if got, err := l.Secrets.Resolve(t.Context(), "token"); got != "the-same-token" || err != nil {
			t.Fatalf("got %q and %v", got, err)
		}
		l.load()
	}
}

func TestToken_errorHidden(t *testing.T) {
	const shown = "hunter2-of-the-server"
	for name, desk := range map[string]http.HandlerFunc{
		"a redirect": func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/token" {
				t.Error("the redirect was followed")
			}
			w.Header().Set("Location", "/elsewhere")
			w.WriteHeader(http.StatusTemporaryRedirect)
		},
		"a huge answer": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			for range 1 << 10 {
				if _, err := io.WriteString(w, strings.Repeat(shown, 1<<10)); err != nil {
					return
				}
			}
		},
		"half an answer": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Length", "1000")
			_, _ = io.WriteString(w, `{"access_token":"`+shown)
		},
		"a page that echoes": func(w http.ResponseWriter, r *http.Request) {
			_, secret, _ := r.BasicAuth()
			http.Error(w, shown+secret+r.Header.Get("Authorization"), http.StatusForbidden)
		},
		"no answer": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"no HTTP": func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := w.(http.Hijacker).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			_, _ = io.WriteString(conn, shown+"\r\n\r\n")
			_ = conn.Close()
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := newTokenLab(t, desk)
			if got := l.get(t); got != "UNAVAILABLE" {
				t.Errorf("the script got %s", got)
			}
			for _, value := range []string{shown, password} {
				if strings.Contains(l.log.String(), value) {
					t.Errorf("the log holds %q:\n%s", value, l.log.String())
				}
			}
			if !strings.Contains(l.log.String(), "read secret of grant") {
				t.Errorf("the log says nothing of it:\n%s", l.log.String())
			}
		})
	}
}

func TestToken_privateNetwork(t *testing.T) {
	l := newTokenLab(t, func(http.ResponseWriter, *http.Request) {})
	l.client.PrivateNetworks = false
	l.load()
	if got := l.get(t); got != "UNAVAILABLE" || l.asked.Load() != 0 {
		t.Errorf("got %s after %d requests", got, l.asked.Load())
	}
	if !strings.Contains(l.log.String(), "private_networks") {
		t.Errorf("the log does not say what to do:\n%s", l.log.String())
	}
}

func TestToken_echoedClient(t *testing.T) {
	l := newTokenLab(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"access_token":%q,"token_type":"bearer"}`, strings.TrimPrefix(r.Header.Get("Authorization"), "Basic "))
	})
	if got := l.get(t); got != "you said Bearer [secret:token]" {
		t.Errorf("got %q", got)
	}
}
