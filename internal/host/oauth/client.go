package oauth

import "golang.org/x/oauth2"

// Client is a client of a token server, as an oauth block says.
type Client struct {
	// AuthorizeURL is where users let the client have tokens of theirs, and
	// RedirectURL the place to which they come back: on this machine, or with https
	// on the front, below [Route]. Both are empty of a client that asks for itself.
	AuthorizeURL, RedirectURL string
	// TokenURL is where tokens are asked for.
	TokenURL string
	ID       string
	// Secret is the key of the secret that proves the client.
	Secret string
	Scopes []string
	// Params are sent beside what the grant sends.
	Params map[string]string
	// InBody sends id and secret in the body of the request, and not in its
	// Authorization header.
	InBody bool
	// PrivateNetworks lets the host be at a private, loopback or link-local address.
	PrivateNetworks bool
}

// ForUsers reports whether the client gets tokens of single users.
func (c Client) ForUsers() bool { return c.AuthorizeURL != "" }

// config is the client as the library knows it.
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
