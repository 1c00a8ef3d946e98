package authn

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpd/mcpd/internal/auth/idp"
	"github.com/mcpd/mcpd/internal/base/jsonguard"
)

// How keys of a provider age. They are read again in passing once they are older
// than keysFresh, before any use once they are older than keysStale, and prove
// nothing once they are older than keysKept: a provider that is down for that long
// may have withdrawn them.
const (
	jwksFresh  = 10 * time.Minute
	jwksStale  = time.Hour
	jwksMaxAge = 24 * time.Hour
)

const (
	// fetchTime bounds the time of a request to a provider.
	fetchTimeout = 10 * time.Second
	// fetchPause is how long nobody asks again after an answer: strangers can name
	// keys that are not known at will.
	minFetchInterval = 10 * time.Second
	// fetchRetry and fetchRetryMost are how long nobody asks after a failure, the
	// first and the longest.
	minFetchRetry, maxFetchRetry = time.Second, time.Minute
)

// issuer is an identity provider, by the keys that it signs with.
type issuer struct {
	// Fixed at creation.
	url        string
	algorithms []string
	protocol   idp.Protocol
	client     *http.Client
	now        func() time.Time
	log        *slog.Logger

	keys     atomic.Pointer[keySet] // nil before the first were read
	fetchers sync.WaitGroup

	// Guarded by mu.
	mu       sync.Mutex
	inFlight *jwksFetch // nil while nothing is fetched
	next     time.Time
	failures int
	closed   bool
}

// flight is one reading of the keys, for which all wait who need it.
type jwksFetch struct {
	cancel context.CancelFunc
	done   chan struct{}
	// Before done is closed, its runner's; after, everybody's.
	err  error
	wait time.Duration
}

// close ends what is fetched, and waits for the end.
func (i *issuer) close() {
	i.mu.Lock()
	i.closed = true
	if i.inFlight != nil {
		i.inFlight.cancel()
	}
	i.mu.Unlock()
	i.fetchers.Wait()
}

// verifier returns what checks signatures by a key. [errAlgorithm] and [errKey]
// say that there is none, an [*unavailableError] that nobody knows now.
func (i *issuer) verifier(ctx context.Context, name idp.KeyName) (idp.Verifier, error) {
	if !slices.Contains(i.algorithms, name.Alg) {
		return nil, errAlgorithm
	}
	now := i.now()
	set, age := i.current(now)
	var down error
	switch {
	case age > jwksStale:
		down = i.refresh(ctx, now)
		if set, age = i.current(i.now()); age > jwksMaxAge {
			return nil, cmp.Or(down, error(&unavailableError{}))
		}
	case age > jwksFresh:
		i.fetch(now)
	}
	if v := set.keys[name]; v != nil {
		return v, nil
	}
	if down == nil {
		down = i.refresh(ctx, now)
	}
	if v := i.keys.Load().keys[name]; v != nil {
		return v, nil
	}
	if down != nil {
		return nil, down // perhaps the provider has that key by now
	}
	return nil, errKey
}

// verify checks the signature of a token by a key. The error is one of those of
// [issuer.verifier], or [errSignature] where the key, as it is now, has not signed it: a
// provider may have put another key under its name.
func (i *issuer) verify(ctx context.Context, name idp.KeyName, token string) error {
	verifier, err := i.verifier(ctx, name)
	if err != nil {
		return err
	}
	if verifier.Verify(ctx, token) == nil {
		return nil
	}
	if i.refresh(ctx, i.now()) != nil {
		return errSignature
	}
	now := i.keys.Load().keys[name]
	if now == nil || now == verifier {
		return errSignature // what the library says repeats claims
	}
	if now.Verify(ctx, token) != nil {
		return errSignature
	}
	return nil
}

// keySet are the keys of a provider, and when they were read. It is immutable.
type keySet struct {
	keys idp.Keys
	read time.Time
}

// known returns the keys and their age, which is above all bounds for none.
func (i *issuer) current(now time.Time) (*keySet, time.Duration) {
	set := i.keys.Load()
	if set == nil {
		return nil, jwksMaxAge + 1
	}
	return set, now.Sub(set.read)
}

// renew waits until the keys have been read again. It returns nil without that
// when they have just been.
func (i *issuer) refresh(ctx context.Context, now time.Time) error {
	f, wait, failed := i.fetch(now)
	if f == nil {
		if failed {
			return &unavailableError{wait: wait}
		}
		return nil
	}
	select {
	case <-ctx.Done():
		return &unavailableError{cause: ctx.Err()}
	case <-f.done:
	}
	if f.err != nil {
		return &unavailableError{wait: f.wait, cause: f.err}
	}
	return nil
}

// fetch has the keys read, or returns the reading that is under way. It returns
// none while it is too early, and then how long, and whether for a failure.
func (i *issuer) fetch(now time.Time) (f *jwksFetch, wait time.Duration, failed bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.inFlight != nil || i.closed || now.Before(i.next) {
		return i.inFlight, i.next.Sub(now), i.closed || i.failures > 0
	}
	ctx, cancel := context.WithTimeout(context.Background(), fetchTimeout)
	f = &jwksFetch{cancel: cancel, done: make(chan struct{})}
	i.inFlight = f
	i.fetchers.Go(func() {
		defer cancel()
		set, err := i.readSafely(ctx)
		i.publish(f, set, err)
	})
	return f, 0, false
}

// readSafely is read, of which no document of a provider can end the process.
func (i *issuer) readSafely(ctx context.Context) (set *keySet, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			set, err = nil, fmt.Errorf("panic: %v", cause)
		}
	}()
	return i.read(ctx)
}

// read asks the provider where its keys are, and for these.
func (i *issuer) read(ctx context.Context) (*keySet, error) {
	url, err := i.protocol.KeysURL(ctx, i.client, i.url)
	if err != nil {
		return nil, err
	}
	if !isProvider(url) {
		return nil, errors.New("read configuration: jwks_uri is not an https URL")
	}
	text, err := i.get(ctx, url)
	if err != nil {
		return nil, fmt.Errorf("read keys: %w", err)
	}
	keys, err := i.protocol.ParseKeys(i.url, text, i.algorithms)
	if err != nil {
		return nil, err
	}
	return &keySet{keys: keys}, nil
}

func (i *issuer) get(ctx context.Context, url string) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Cache-Control", "no-cache")
	resp, err := i.client.Do(r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	return io.ReadAll(resp.Body)
}

// land publishes what was read.
func (i *issuer) publish(f *jwksFetch, set *keySet, err error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	now, wait := i.now(), minFetchInterval
	switch {
	case err == nil:
		set.read = now
		i.keys.Store(set)
		if i.failures > 0 {
			i.log.Info("an identity provider answers again", slog.String("issuer", i.url))
		}
		i.failures = 0
	default:
		wait = min(minFetchRetry<<min(i.failures, 6), maxFetchRetry)
		if i.failures++; i.failures == 1 && !i.closed {
			i.log.Warn("an identity provider does not answer; what is known of its keys goes on for a day",
				slog.String("issuer", i.url), slog.String("error", err.Error()))
		}
	}
	i.next = now.Add(wait)
	f.err, f.wait = err, wait
	i.inFlight = nil
	close(f.done)
}

// documents lets JSON documents through alone; see [documentsOnly].
type jsonTransport struct{ inner http.RoundTripper }

// maxDocument bounds a document of a provider in bytes.
const maxDocument = 1 << 20

// documentLimits bound what a provider sends.
var documentLimits = jsonguard.Limits{Bytes: maxDocument, Depth: 16, Tokens: 50_000}

// RoundTrip sends a request, and reads the whole answer.
func (d jsonTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := d.inner.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the status is %d", resp.StatusCode)
	}
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxDocument+1))
	if err != nil {
		return nil, fmt.Errorf("read answer: %w", err)
	}
	if err := jsonguard.Check(text, documentLimits); err != nil {
		return nil, fmt.Errorf("read answer: %w", err)
	}
	if !jsonguard.IsObject(text) {
		return nil, errors.New("read answer: it is no JSON object")
	}
	whole := *resp
	whole.Body = io.NopCloser(bytes.NewReader(text))
	whole.ContentLength = int64(len(text))
	return &whole, nil
}

// documentsOnly returns a client whose answers are JSON documents of a bounded
// size that have passed the gate, with status 200: whatever else comes is an error
// that repeats nothing of it.
func jsonClient(c *http.Client) *http.Client {
	only := *c
	only.Transport = jsonTransport{c.Transport}
	if c.Transport == nil {
		only.Transport = jsonTransport{http.DefaultTransport}
	}
	return &only
}
