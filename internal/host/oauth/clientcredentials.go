// Package oauth fetches access tokens: for this server itself with client credentials (RFC 6749
// section 4.4), and for users with authorization codes (section 4.1).
//
// A [Client] is the configuration of an oauth block. A [Broker] returns [ClientCredentials] for
// it, which fetch a token on first use, cache it until shortly before it expires, and then
// fetch the next one while the old one is still used. Concurrent callers share one request.
// After a failure there is a backoff, in which calls fail at once.
//
// [UserTokens] are the tokens of the users of one client. A user without a token is prompted to
// open a page, which an error names, and returns to a port of this machine or to a page of the
// front. On the front it is unknown who opened the page; they may have followed a link
// sent by another user. So the token is not stored until the prompted user has entered the code
// on the page. Tokens are stored in a [Vault].
//
// Requests use the transport of the Broker, so that the rules of egress apply. Responses are
// validated as JSON, and errors contain nothing of them except the codes of RFC 6749 section
// 5.2. The package follows no redirects, and sends users only to the authorization server.
package oauth

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// requestTimeout bounds one token request.
	requestTimeout = 10 * time.Second
	// renewBefore is how long before its expiry a token is renewed, limited to a tenth of its
	// lifetime.
	renewBefore = time.Minute
	// The bounds of the backoff, which doubles after each failure.
	minBackoff = time.Second
	maxBackoff = time.Minute
	// minDoubtInterval is the minimum interval between renewals because of rejections.
	minDoubtInterval = time.Minute
)

// Options configure a Broker.
type Options struct {
	// Transport sends the requests of a client. It must enforce egress rules, return complete
	// responses, and not follow redirects.
	Transport func(Client) http.RoundTripper
	// OnTokenAdded is called with the keys of client and user before the first token of a user
	// is stored and used. If it returns an error, the token is dropped. May be nil.
	OnTokenAdded func(client, user string) error
	// OnTokenLost is called when a token is gone without being dropped. May be nil.
	OnTokenLost func(client, user string, why LossReason)
	// Now is the clock. Nil means time.Now.
	Now func() time.Time
}

// LossReason says why a token of a user is gone.
type LossReason string

const (
	// LossRejected: the authorization server refuses to renew the token.
	LossRejected LossReason = "refused"
	// LossExpired: the token has expired, or a host rejects it, and it cannot be renewed.
	LossExpired LossReason = "ended"
	// LossNotStored: the token could not be stored.
	LossNotStored LossReason = "unkept"
)

// Broker fetches tokens for its clients. It is safe for concurrent use.
type Broker struct {
	options Options

	// hasCallbacks reports whether users can return to the front.
	hasCallbacks atomic.Bool

	background sync.WaitGroup
	mu         sync.Mutex
	closed     bool
	stops      map[*context.CancelFunc]struct{}
	users      map[string]*UserTokens // by client key
}

// New returns a Broker. Close it when the server stops.
func New(o Options) *Broker {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.OnTokenAdded == nil {
		o.OnTokenAdded = func(string, string) error { return nil }
	}
	if o.OnTokenLost == nil {
		o.OnTokenLost = func(string, string, LossReason) {}
	}
	return &Broker{options: o, stops: map[*context.CancelFunc]struct{}{}, users: map[string]*UserTokens{}}
}

// Close cancels all requests, and waits for them.
func (b *Broker) Close() {
	b.mu.Lock()
	b.closed = true
	for stop := range b.stops {
		(*stop)()
	}
	users := slices.Collect(maps.Values(b.users))
	b.mu.Unlock()
	for _, u := range users {
		u.close()
	}
	b.background.Wait()
}

// ClientCredentials returns the tokens of a client itself. secret returns the value of the
// client secret, and is called for each token request.
func (b *Broker) ClientCredentials(c Client, secret func(ctx context.Context, key string) (string, error)) *ClientCredentials {
	return &ClientCredentials{broker: b, client: c, secret: secret}
}

// ClientCredentials are the tokens of one client. It is safe for concurrent use.
type ClientCredentials struct {
	// Fixed at creation.
	broker *Broker
	client Client
	secret func(ctx context.Context, key string) (string, error)

	mu      sync.Mutex
	current string
	// renewAt is when the current token is replaced, end its expiry.
	renewAt, end time.Time
	fetching     *fetch
	// failure is the error of the last request, or nil. There is no further request before
	// retryAt.
	failure error
	backoff time.Duration
	retryAt time.Time
	// lastDoubt is the last renewal because of a rejection.
	lastDoubt time.Time
}

// fetch is one token request. value and err are set when done is closed.
type fetch struct {
	done  chan struct{}
	value string
	err   error
}

// Token returns a valid token, and waits for one if necessary. Its error names the token server
// and contains no value.
func (c *ClientCredentials) Token(ctx context.Context) (string, error) {
	c.mu.Lock()
	now := c.broker.options.Now()
	valid := now.Before(c.end)
	if valid && now.Before(c.renewAt) {
		defer c.mu.Unlock()
		return c.current, nil
	}
	if c.fetching == nil && !now.Before(c.retryAt) {
		c.fetching = c.broker.startFetch(ctx, c)
	}
	fetching, current, failure, retryIn := c.fetching, c.current, c.failure, c.retryAt.Sub(now)
	c.mu.Unlock()
	switch {
	case valid: // the next one is being fetched, or in backoff
		return current, nil
	case fetching == nil:
		return "", fmt.Errorf("%s: %w (next attempt in %s)", c.client.TokenURL, failure, retryIn.Round(time.Second))
	}
	select {
	case <-fetching.done:
	case <-ctx.Done():
		return "", fmt.Errorf("%s: %w", c.client.TokenURL, context.Cause(ctx))
	}
	if fetching.err != nil {
		return "", fmt.Errorf("%s: %w", c.client.TokenURL, fetching.err)
	}
	return fetching.value, nil
}

// ReportUnauthorized reports that a host rejected the current token, which may have been
// revoked: a new one is fetched on next use. Hosts could reject at will, so that happens at
// most once a minute.
func (c *ClientCredentials) ReportUnauthorized() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := c.broker.options.Now(); now.Sub(c.lastDoubt) >= minDoubtInterval {
		c.lastDoubt, c.renewAt = now, now
	}
}

// runDetached runs do independently of the cancellation of ctx, within requestTimeout: a server
// may issue a token only once. It returns false if the broker is closed; then do does not run.
func (b *Broker) runDetached(ctx context.Context, do func(ctx context.Context)) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return false
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), requestTimeout)
	b.stops[&cancel] = struct{}{}
	b.background.Go(func() {
		defer cancel()
		do(ctx)
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.stops, &cancel)
	})
	return true
}

// startFetch starts a token request. It continues if ctx is cancelled, because others wait for
// it.
func (b *Broker) startFetch(ctx context.Context, s *ClientCredentials) *fetch {
	f := &fetch{done: make(chan struct{})}
	if !b.runDetached(ctx, func(ctx context.Context) {
		got, err := b.requestToken(ctx, s)
		s.finishFetch(f, got, err)
	}) {
		f.err = context.Canceled
		close(f.done)
	}
	return f
}

// requestToken requests a token with the current client secret.
func (b *Broker) requestToken(ctx context.Context, s *ClientCredentials) (token, error) {
	secret, err := s.secret(ctx, s.client.Secret)
	if err != nil {
		return token{}, err
	}
	return exchange(ctx, s.client, secret, b.options.Transport(s.client))
}

// finishFetch stores the result of a token request.
func (c *ClientCredentials) finishFetch(f *fetch, got token, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.broker.options.Now()
	c.fetching, c.failure = nil, err
	if err == nil {
		c.current, c.end = got.value, now.Add(got.life)
		c.renewAt = c.end.Add(-min(renewBefore, got.life/10))
		c.backoff, c.retryAt = 0, time.Time{}
	} else {
		c.backoff = nextBackoff(c.backoff)
		c.retryAt = now.Add(c.backoff)
	}
	f.value, f.err = got.value, err
	close(f.done)
}

func nextBackoff(pause time.Duration) time.Duration {
	return min(max(2*pause, minBackoff), maxBackoff)
}
