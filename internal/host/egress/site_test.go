package egress

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/mcpd/mcpd/internal/language/grant"
	"github.com/mcpd/mcpd/scripting"
)

const canary = "canary-3f9a1c"

// site is a loopback server, and a Pool that may reach it.
type site struct {
	*testing.T
	*httptest.Server
	pool  *Pool
	grant grant.HTTP
	log   bytes.Buffer
}

// newSite serves handler, over TLS if secure is set.
func newSite(t *testing.T, secure bool, handler http.HandlerFunc) *site {
	t.Helper()
	s := &site{T: t, Server: httptest.NewUnstartedServer(handler)}
	s.Server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	o := Options{
		Logger:  slog.New(slog.NewTextHandler(&s.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Resolve: func(context.Context, string) (string, error) { return canary, nil },
	}
	if secure {
		s.Server.EnableHTTP2 = true
		s.StartTLS()
		roots := x509.NewCertPool()
		roots.AddCert(s.Certificate())
		o.TLS = &tls.Config{RootCAs: roots}
	} else {
		s.Start()
	}
	s.pool = New(o)
	s.grant = grant.HTTP{Name: "test", Hosts: []string{s.host()}, PrivateNetworks: true}
	t.Cleanup(func() {
		if err := s.pool.Close(); err != nil {
			t.Error(err)
		}
		s.Server.Close()
		if strings.Contains(s.log.String(), canary) {
			t.Errorf("the secret is in the log:\n%s", &s.log)
		}
	})
	return s
}

func (s *site) host() string { return s.Listener.Addr().String() }

type fields map[string]any

// do sends a request, and returns the response, or the error as "CODE: message".
func (s *site) do(request fields) (fields, string) {
	s.Helper()
	return s.doContext(s.Context(), request)
}

func (s *site) doContext(ctx context.Context, request fields) (fields, string) {
	s.Helper()
	if url, ok := request["url"].(string); ok && strings.HasPrefix(url, "/") {
		request["url"] = s.URL + url
	}
	in, err := json.Marshal(request)
	if err != nil {
		s.Fatal(err)
	}
	out, err := s.pool.Do(ctx, s.grant, in)
	if err != nil {
		var h *scripting.HostError
		if !errors.As(err, &h) {
			s.Fatalf("the error is a %T: %v", err, err)
		}
		if strings.Contains(err.Error(), canary) {
			s.Errorf("the secret is in the error: %v", err)
		}
		return nil, strings.ReplaceAll(err.Error(), s.host(), "HOST")
	}
	var answer fields
	if err := json.Unmarshal(out, &answer); err != nil {
		s.Fatalf("the answer is not JSON: %v\n%s", err, out)
	}
	return answer, ""
}

// echo responds with the request.
func echo(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	w.Header()["Date"] = nil
	w.Header().Set("Content-Type", "text/plain")
	w.Header().Add("X-Twice", "a")
	w.Header().Add("X-Twice", "b")
	w.WriteHeader(http.StatusTeapot)
	fmt.Fprintf(w, "%s %s %s %q", r.Method, r.RequestURI, r.Proto[:6], body)
	for _, name := range []string{"Authorization", "X-Mine", "User-Agent", "Cookie", "Accept-Encoding", "Content-Length"} {
		if v, ok := r.Header[name]; ok {
			fmt.Fprintf(w, " %s=%s", name, v)
		}
	}
}
