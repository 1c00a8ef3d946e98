package oauth

// Client is a client of a token server, as an oauth block says.
type Client struct {
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
