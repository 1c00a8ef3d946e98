package upstream

import (
	"io"
	"log/slog"
	"net/http"

	"github.com/mcpd/mcpd/internal/language/grant"
)

// Servers without a network are played by what answers requests of HTTP.

// playedBy are the options of who speaks to such a server.
func playedBy(server http.RoundTripper) Options {
	return Options{Version: "test", Logger: slog.New(slog.DiscardHandler), Transport: func(grant.HTTP) http.RoundTripper { return server }}
}

// sentBy returns the message that a request carries, and its text; nothing where it carries
// none.
func sentBy(r *http.Request) (m message, text []byte, err error) {
	if r.Method != http.MethodPost {
		return m, nil, nil
	}
	body, err := r.GetBody()
	if err != nil {
		return m, nil, err
	}
	if text, err = io.ReadAll(body); err != nil {
		return m, nil, err
	}
	m, err = parse(text)
	return m, text, err
}

// given returns the answer to a request, as long as its body is.
func given(r *http.Request, status int, kind string, body io.Reader) *http.Response {
	closer, ok := body.(io.ReadCloser)
	if !ok {
		closer = io.NopCloser(body)
	}
	return &http.Response{StatusCode: status, Request: r, Header: http.Header{"Content-Type": {kind}}, ContentLength: -1, Body: closer}
}
