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

// The ages of a provider's keys. Keys older than jwksFresh are refreshed in the
// background, and keys older than jwksStale before use. Keys older than
// jwksMaxAge are rejected: a provider that was down for so long may have
// withdrawn them.
const (
	jwksFresh  = 10 * time.Minute
	jwksStale  = time.Hour
	jwksMaxAge = 24 * time.Hour
)

const (
	// fetchTimeout bounds a request to a provider.
	fetchTimeout = 10 * time.Second
	// minFetchInterval is the time between fetches after a success: any client
	// can name unknown keys at will.
	minFetchInterval = 10 * time.Second
	// minFetchRetry and maxFetchRetry are the first and the longest delay after a
	// failure.
	minFetchRetry, maxFetchRetry = time.Second, time.Minute
)

// issuer is an identity provider with its signing keys.
type issuer struct {
	// Fixed at creation.
	url        string
	algorithms []string
	protocol   idp.Protocol
	client     *http.Client
	now        func() time.Time
	log        *slog.Logger

	keys     atomic.Pointer[keySet] // nil before the first fetch
	fetchers sync.WaitGroup

	// Guarded by mu.
	mu       sync.Mutex
	inFlight *jwksFetch // nil while nothing is fetched
	next     time.Time
	failures int
	closed   bool
}

// jwksFetch is one fetch of the keys, which all waiters share.
type jwksFetch struct {
	cancel context.CancelFunc
	done   chan struct{}
	// Written by the fetching goroutine before done is closed, read after.
	err  error
	wait time.Duration
}

// close cancels a running fetch and waits for it.
func (i *issuer) close() {
	i.mu.Lock()
	i.closed = true
	if i.inFlight != nil {
		i.inFlight.cancel()
	}
	i.mu.Unlock()
	i.fetchers.Wait()
}

// verifier returns the verifier of a key. The error is [errAlgorithm] or
// [errKey] if there is none, or an [*unavailableError] if the provider does not
// answer.
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
		return nil, down // the provider may have that key by now
	}
	return nil, errKey
}

// verify checks the signature of a token. The error is an error of
// [issuer.verifier], or [errSignature] if the present key has not signed the
// token: a provider may replace a key without a new name.
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
		return errSignature // the error of the library contains claims
	}
	if now.Verify(ctx, token) != nil {
		return errSignature
	}
	return nil
}

// keySet holds the keys of a provider with the time of the fetch. It is
// immutable.
type keySet struct {
	keys idp.Keys
	read time.Time
}

// current returns the keys and their age; without keys, the age is over all
// limits.
func (i *issuer) current(now time.Time) (*keySet, time.Duration) {
	set := i.keys.Load()
	if set == nil {
		return nil, jwksMaxAge + 1
	}
	return set, now.Sub(set.read)
}

// refresh waits until the keys have been fetched again. It returns nil at once
// if they were just fetched.
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

// fetch starts a fetch of the keys, or returns the running one. It returns nil
// if it is too early, with the remaining wait, and whether the last fetch
// failed.
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

// readSafely is read with panics as errors, so that no document of a provider
// can end the process.
func (i *issuer) readSafely(ctx context.Context) (set *keySet, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			set, err = nil, fmt.Errorf("panic: %v", cause)
		}
	}()
	return i.read(ctx)
}

// read fetches the provider's configuration and then its keys.
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

// publish publishes the fetched keys.
func (i *issuer) publish(f *jwksFetch, set *keySet, err error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	now, wait := i.now(), minFetchInterval
	switch {
	case err == nil:
		set.read = now
		i.keys.Store(set)
		if i.failures > 0 {
			i.log.Info("identity provider recovered", slog.String("issuer", i.url))
		}
		i.failures = 0
	default:
		wait = min(minFetchRetry<<min(i.failures, 6), maxFetchRetry)
		if i.failures++; i.failures == 1 && !i.closed {
			i.log.Warn("fetch keys of identity provider, keeping known keys for a day",
				slog.String("issuer", i.url), slog.String("error", err.Error()))
		}
	}
	i.next = now.Add(wait)
	f.err, f.wait = err, wait
	i.inFlight = nil
	close(f.done)
}

// jsonTransport accepts only JSON documents; see [jsonClient].
type jsonTransport struct{ inner http.RoundTripper }

// maxDocument bounds a provider's document, in bytes.
const maxDocument = 1 << 20

// documentLimits bound the JSON of a provider.
var documentLimits = jsonguard.Limits{Bytes: maxDocument, Depth: 16, Tokens: 50_000}

// RoundTrip sends a request, and reads the whole response.
func (t jsonTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := t.inner.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("unexpected status %d", resp.StatusCode)
	}
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxDocument+1))
	if err != nil {
		return nil, fmt.Errorf("read response: %w", err)
	}
	if err := jsonguard.Check(text, documentLimits); err != nil {
		return nil, fmt.Errorf("read response: %w", err)
	}
	if !jsonguard.IsObject(text) {
		return nil, errors.New("read response: it is not a JSON object")
	}
	buffered := *resp
	buffered.Body = io.NopCloser(bytes.NewReader(text))
	buffered.ContentLength = int64(len(text))
	return &buffered, nil
}

// jsonClient returns a client that accepts only responses with status 200 and a
// JSON document of bounded size that passes the JSON guard. Any other response
// is an error that contains nothing of it.
func jsonClient(c *http.Client) *http.Client {
	only := *c
	only.Transport = jsonTransport{c.Transport}
	if c.Transport == nil {
		only.Transport = jsonTransport{http.DefaultTransport}
	}
	return &only
}
