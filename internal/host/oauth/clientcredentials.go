// Package oauth gets access tokens: for this server itself, by the grant of
// client credentials (RFC 6749 section 4.4), and for users who let it have theirs,
// by authorization codes (section 4.1).
//
// A [Client] is what an oauth block says. An [Issuer] makes a [Source] of each,
// which asks for a token when one is first needed, keeps it until shortly
// before it ends, and then asks for the next while the old one still serves.
// Whoever comes meanwhile waits for the same answer; after a failure nobody asks
// for a while, and calls are told at once.
//
// [Users] are those of one client: who has given no token is to be asked, by the
// page that an error names, and comes back to a port of this machine, or to a page
// of the front. There nobody knows who has opened the page, which may have come by
// a link that somebody else was sent: so the token is joined to nobody until the
// user who was asked for it has typed the code that the page shows. Tokens are kept
// in a [Vault].
//
// Requests go out by the transport that the Issuer is given, so that the rules
// of egress hold for them. Answers pass the JSON gate, and no error holds
// anything of them but the codes of RFC 6749 section 5.2. The package follows
// no redirect, and sends nobody anywhere but to the authorization server.
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
	// patience is how long one request for a token may take.
	requestTimeout = 10 * time.Second
	// early is how long before its end a token is replaced, and at most a tenth
	// of its life.
	renewBefore = time.Minute
	// After a failure nobody asks for shortestPause, which doubles with each
	// further one up to longestPause.
	minBackoff = time.Second
	maxBackoff = time.Minute
	// doubtPause is how often a token is renewed at most because it was refused.
	minDoubtInterval = time.Minute
)

// Options are an Issuer's doors to the outside.
type Options struct {
	// Transport sends the requests of a client. Its errors and answers are those
	// of egress: whole, and without redirects.
	Transport func(Client) http.RoundTripper
	// Joined is told of a token that a user of a client has let it have, by the keys of
	// both, before it is kept and used; an error means that it may be neither. Nil hears
	// of none.
	OnTokenAdded func(client, user string) error
	// Lost is told of a token that is not there any more, though nobody has dropped it,
	// and why. Nil hears of none.
	OnTokenLost func(client, user string, why LossReason)
	// Now is the clock. Nil means time.Now.
	Now func() time.Time
}

// Loss is why a token of a user is not there any more.
type LossReason string

const (
	// Refused is the one of a token that the authorization server does not renew any more.
	LossRejected LossReason = "refused"
	// Ended is the one of a token that has ended, or that a host does not take any more, and
	// that cannot be renewed.
	LossExpired LossReason = "ended"
	// Unkept is the one of a token that was joined and could not be kept.
	LossNotStored LossReason = "unkept"
)

// Issuer asks token servers on behalf of the sources that it makes. It is safe
// for concurrent use.
type Broker struct {
	options Options

	// fronted says that users can come back by a front.
	hasCallbacks atomic.Bool

	background sync.WaitGroup
	mu         sync.Mutex
	closed     bool
	stops      map[*context.CancelFunc]struct{}
	users      map[string]*UserTokens // by the keys of their clients
}

// New returns an Issuer. Close it when the server stops.
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

// Close ends all requests, and waits for them.
func (i *Broker) Close() {
	i.mu.Lock()
	i.closed = true
	for stop := range i.stops {
		(*stop)()
	}
	users := slices.Collect(maps.Values(i.users))
	i.mu.Unlock()
	for _, u := range users {
		u.close()
	}
	i.background.Wait()
}

// Source returns the tokens of a client. secret returns the value of the
// client's secret, and is asked each time that a token is.
func (i *Broker) Source(c Client, secret func(ctx context.Context, key string) (string, error)) *ClientCredentials {
	return &ClientCredentials{broker: i, client: c, secret: secret}
}

// Source is the tokens of one client. It is safe for concurrent use.
type ClientCredentials struct {
	// Fixed at creation.
	broker *Broker
	client Client
	secret func(ctx context.Context, key string) (string, error)

	mu      sync.Mutex
	current string
	// renew is when the current token is to be replaced, end when it ends.
	renewAt, end time.Time
	fetching     *fetch
	// failure is how the last request failed, nil when it did not; nobody asks
	// again before retry.
	failure error
	backoff time.Duration
	retryAt time.Time
	// doubted is when a refusal last had the token renewed.
	lastDoubt time.Time
}

// flight is one request for a token. err may be read when done is closed.
type fetch struct {
	done  chan struct{}
	value string
	err   error
}

// Token returns a token that holds, and waits for one when it must. Its error
// names the token server and holds no value.
func (s *ClientCredentials) Token(ctx context.Context) (string, error) {
	s.mu.Lock()
	now := s.broker.options.Now()
	held := now.Before(s.end)
	if held && now.Before(s.renewAt) {
		defer s.mu.Unlock()
		return s.current, nil
	}
	if s.fetching == nil && !now.Before(s.retryAt) {
		s.fetching = s.broker.startFetch(ctx, s)
	}
	flying, current, failure, pause := s.fetching, s.current, s.failure, s.retryAt.Sub(now)
	s.mu.Unlock()
	switch {
	case held: // the next one is on its way, or nobody can have it now
		return current, nil
	case flying == nil:
		return "", fmt.Errorf("%s: %w (it is asked again in %s)", s.client.TokenURL, failure, pause.Round(time.Second))
	}
	select {
	case <-flying.done:
	case <-ctx.Done():
		return "", fmt.Errorf("%s: %w", s.client.TokenURL, context.Cause(ctx))
	}
	if flying.err != nil {
		return "", fmt.Errorf("%s: %w", s.client.TokenURL, flying.err)
	}
	return flying.value, nil
}

// Refused says that somebody did not accept the current token, which may have been
// taken back: the next one is asked for when a token is needed again. As whoever
// refuses may do so at will, that is done once a minute at most.
func (s *ClientCredentials) ReportUnauthorized() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := s.broker.options.Now(); now.Sub(s.lastDoubt) >= minDoubtInterval {
		s.lastDoubt, s.renewAt = now, now
	}
}

// apart does something with a token server for as long as that may take, also
// when ctx has ended: what the server gives is given once. It reports false
// when the issuer is closed, and nothing is done.
func (i *Broker) runDetached(ctx context.Context, do func(ctx context.Context)) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.closed {
		return false
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), requestTimeout)
	i.stops[&cancel] = struct{}{}
	i.background.Go(func() {
		defer cancel()
		do(ctx)
		i.mu.Lock()
		defer i.mu.Unlock()
		delete(i.stops, &cancel)
	})
	return true
}

// fly begins a request for a token. It goes on when ctx ends, as others wait for
// it too.
func (i *Broker) startFetch(ctx context.Context, s *ClientCredentials) *fetch {
	f := &fetch{done: make(chan struct{})}
	if !i.runDetached(ctx, func(ctx context.Context) {
		got, err := i.requestToken(ctx, s)
		s.finishFetch(f, got, err)
	}) {
		f.err = context.Canceled
		close(f.done)
	}
	return f
}

// ask asks for a token with the client's secret as it is now.
func (i *Broker) requestToken(ctx context.Context, s *ClientCredentials) (token, error) {
	secret, err := s.secret(ctx, s.client.Secret)
	if err != nil {
		return token{}, err
	}
	return exchange(ctx, s.client, secret, i.options.Transport(s.client))
}

// land takes up what a request has brought.
func (s *ClientCredentials) finishFetch(f *fetch, got token, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.broker.options.Now()
	s.fetching, s.failure = nil, err
	if err == nil {
		s.current, s.end = got.value, now.Add(got.life)
		s.renewAt = s.end.Add(-min(renewBefore, got.life/10))
		s.backoff, s.retryAt = 0, time.Time{}
	} else {
		s.backoff = nextBackoff(s.backoff)
		s.retryAt = now.Add(s.backoff)
	}
	f.value, f.err = got.value, err
	close(f.done)
}

func nextBackoff(pause time.Duration) time.Duration {
	return min(max(2*pause, minBackoff), maxBackoff)
}
