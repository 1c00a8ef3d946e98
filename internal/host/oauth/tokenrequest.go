package oauth

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"

	"github.com/mcpd/mcpd/internal/base/jsonguard"
	"github.com/mcpd/mcpd/internal/language/grant"
	"github.com/mcpd/mcpd/scripting"
)

const (
	// maxAnswer bounds a response of a token server, in bytes.
	maxAnswer = 256 << 10
	// defaultLife is the lifetime of a token without expires_in, which is only recommended (RFC
	// 6749 section 5.1).
	defaultLife = 5 * time.Minute
)

var (
	errNotJSON   = errors.New("the response is not application/json")
	errMalformed = errors.New("the response is not a token")
	errNotBearer = errors.New("the token is not a bearer token")
	errExpired   = errors.New("the token has already expired")
)

// codes are the error codes of RFC 6749 section 5.2, and two from section 4.1.2.1 that servers
// also use. Nothing else of a response is repeated.
var codes = []string{
	"invalid_request", "invalid_client", "invalid_grant", "unauthorized_client", "unsupported_grant_type", "invalid_scope",
	"server_error", "temporarily_unavailable",
}

// Grant returns the HTTP grant for the requests of a client: its token server and nothing else.
func (c Client) Grant() grant.HTTP {
	g := grant.HTTP{Name: "oauth", Methods: []string{http.MethodPost}, MaxResponse: maxAnswer, PrivateNetworks: c.PrivateNetworks}
	if u, err := url.Parse(c.TokenURL); err == nil {
		g.Hosts = []string{grant.HostOf(u)}
	}
	return g
}

// token is an access token with its lifetime. refresh is the refresh token, or "".
type token struct {
	value   string
	life    time.Duration
	refresh string
}

func exchange(ctx context.Context, c Client, secret string, transport http.RoundTripper) (token, error) {
	config := clientcredentials.Config{
		ClientID: c.ID, ClientSecret: secret, TokenURL: c.TokenURL, Scopes: c.Scopes,
		EndpointParams: url.Values{}, AuthStyle: oauth2.AuthStyleInHeader,
	}
	for name, value := range c.Params {
		config.EndpointParams.Set(name, value)
	}
	if c.InBody {
		config.AuthStyle = oauth2.AuthStyleInParams
	}
	return validToken(config.Token(withTransport(ctx, transport)))
}

// withTransport makes the library send its requests through a transport, and filters the
// responses.
func withTransport(ctx context.Context, transport http.RoundTripper) context.Context {
	client := &http.Client{Transport: checkedTransport{transport}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return context.WithValue(ctx, oauth2.HTTPClient, client)
}

// validToken returns the token of the library if it is usable.
func validToken(got *oauth2.Token, err error) (token, error) {
	if err != nil {
		return token{}, safeError(err)
	}
	life := defaultLife
	if !got.Expiry.IsZero() {
		life = time.Until(got.Expiry)
	}
	switch {
	case !strings.EqualFold(got.Type(), "bearer"):
		return token{}, errNotBearer
	case life <= 0:
		return token{}, errExpired
	case strings.ContainsFunc(got.AccessToken, func(r rune) bool { return r < ' ' || r > '~' }): // RFC 6749 appendix A.12
		return token{}, errMalformed
	}
	return token{value: got.AccessToken, life: life, refresh: got.RefreshToken}, nil
}

// safeError returns an error without content of the response, which errors of the library
// quote.
func safeError(err error) error {
	var fault *scripting.HostError
	var refused *serverError
	switch {
	case errors.As(err, &fault):
		return fault
	case errors.As(err, &refused):
		return refused
	case errors.Is(err, errNotJSON):
		return errNotJSON
	}
	return errMalformed
}

type serverError struct {
	status int
	code   string // "" if the response has no known code
}

func (e *serverError) Error() string {
	if e.code != "" {
		return fmt.Sprintf("the token server answered %d (%s)", e.status, e.code)
	}
	return fmt.Sprintf("the token server answered %d", e.status)
}

// checkedTransport only passes responses that may hold a token.
type checkedTransport struct{ http.RoundTripper }

func (t checkedTransport) RoundTrip(out *http.Request) (*http.Response, error) {
	out.Header.Set("Accept", "application/json")
	out.Header.Set("User-Agent", "mcpd")
	resp, err := t.RoundTripper.RoundTrip(out)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	_ = resp.Body.Close()
	if err != nil {
		return nil, errMalformed
	}
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	passes := jsonguard.Check(body, jsonguard.Limits{Bytes: maxAnswer, Depth: 16, Tokens: 10_000}) == nil
	code := ""
	if passes {
		code = errorCode(body)
	}
	switch {
	case resp.StatusCode != http.StatusOK || code != "":
		return nil, &serverError{status: resp.StatusCode, code: code}
	case kind != "application/json":
		return nil, errNotJSON
	case !passes:
		return nil, errMalformed
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	return resp, nil
}

// errorCode returns the error code in a response, if it is a known one.
func errorCode(body []byte) string {
	var answer struct {
		Error string `json:"error"`
	}
	if json.Unmarshal(body, &answer) != nil || !slices.Contains(codes, answer.Error) {
		return ""
	}
	return answer.Error
}

// Client is the configuration of an OAuth client, from an oauth block. Its JSON names are part
// of the keys of stored tokens.
type Client struct {
	// AuthorizeURL is where users give consent. RedirectURL is where they return to: a port of
	// this machine, or an https URL of the front below [CallbackPath]. Both are empty for a
	// client that fetches its own tokens.
	AuthorizeURL string `json:"AuthorizeURL"`
	RedirectURL  string `json:"RedirectURL"`
	TokenURL     string `json:"TokenURL"`
	ID           string `json:"ID"`
	// Secret is the key of the client secret.
	Secret string   `json:"Secret"`
	Scopes []string `json:"Scopes"`
	// Params are additional request parameters.
	Params map[string]string `json:"Params"`
	// InBody sends id and secret in the request body instead of the Authorization header.
	InBody bool `json:"InBody"`
	// PrivateNetworks allows the host to have a private, loopback or link-local address.
	PrivateNetworks bool `json:"PrivateNetworks"`
}

func (c Client) ForUsers() bool { return c.AuthorizeURL != "" }

func (c Client) config(secret string) *oauth2.Config {
	config := &oauth2.Config{
		ClientID: c.ID, ClientSecret: secret, RedirectURL: c.RedirectURL, Scopes: c.Scopes,
		Endpoint: oauth2.Endpoint{AuthURL: c.AuthorizeURL, TokenURL: c.TokenURL, AuthStyle: oauth2.AuthStyleInHeader},
	}
	if c.InBody || secret == "" {
		config.Endpoint.AuthStyle = oauth2.AuthStyleInParams
	}
	return config
}
