package report

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/mcpd/mcpd/internal/base/observe"
	"github.com/mcpd/mcpd/internal/base/truncate"
)

// Settings say where reports go.
type Settings struct {
	URL string
	// Token is the name of the secret that is sent as bearer token; "" for none.
	Token string
	// Every is the time between two reports.
	Every time.Duration
}

// Options configure a [Reporter]. All fields are required.
type Options struct {
	// Settings returns the current settings, and false if no reports are sent now.
	Settings func() (Settings, bool)
	// Report returns the current state.
	Report func() Report
	// Secret returns the value of a secret.
	Secret func(ctx context.Context, name string) (string, error)
	// Count counts an attempt by its outcome: [observe.ReportDelivered] or [observe.ReportFailed].
	Count  func(outcome string)
	Logger *slog.Logger
}

// Reporter sends reports. It never waits for calls or loads, and none of them waits for it.
type Reporter struct {
	options Options
	client  *http.Client
	timeout time.Duration // of an attempt
	changed chan struct{} // receives a value when the state or the settings may have changed

	mu     sync.Mutex
	status Status
}

// Status is the state of a [Reporter] at one moment.
type Status struct {
	// Delivered is the time of the last report that the receiver accepted; zero for none.
	Delivered time.Time
	// Failed is the time of the last attempt, and Problem says why it failed; zero if it was delivered.
	Failed  time.Time
	Problem string
	// Failures counts the attempts that failed in a row.
	Failures int
}

// Status returns the state.
func (r *Reporter) Status() Status {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.status
}

const (
	// attemptTimeout bounds one attempt, from reading the token to the end of the response.
	attemptTimeout = 30 * time.Second
	// maxResponse bounds the header of a response, and what is read of its body, which is ignored.
	maxResponse = 64 << 10
	// soon bounds the random delay of the first report and of one after a change, so that servers
	// which change together do not report together. It is also the least time between two reports if
	// nothing but the state changes.
	soon = 10 * time.Second
	// minDelay is the first delay after a failure. It doubles with each, up to the time between two
	// reports.
	minDelay = time.Second
	// maxRetryAfter bounds the delay that a receiver may ask for.
	maxRetryAfter = time.Hour
)

// New returns a reporter, which sends nothing before Run.
func New(o Options) *Reporter {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	transport.MaxResponseHeaderBytes = maxResponse
	client := &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse // the token is for the configured server only
	}}
	return &Reporter{options: o, client: client, timeout: attemptTimeout, changed: make(chan struct{}, 1)}
}

// Changed makes Run send a report soon, with the current settings. It does not block.
func (r *Reporter) Changed() {
	select {
	case r.changed <- struct{}{}:
	default:
	}
}

// run is the state of [Reporter.Run].
type run struct {
	settings   Settings
	on         bool
	timer      *time.Timer
	next, last time.Time // of attempts
	failures   int       // in a row
	logged     bool      // a failure with these settings
}

// plan plans the next attempt.
func (r *run) plan(delay time.Duration) {
	r.next = time.Now().Add(delay)
	r.timer.Reset(delay)
}

// refresh applies the current settings, and reports whether they are others than before.
func (r *run) refresh(settings Settings, on bool) bool {
	other := settings != r.settings
	r.settings, r.on, r.logged = settings, on, r.logged && !other
	return other
}

// changed plans an attempt after a change: soon, at random. Changes that follow each other closely do not
// lead to more than one report in this time. A failing receiver is not asked sooner.
func (r *run) changed(other bool) {
	spread := min(r.settings.Every, soon)
	delay := rand.N(spread + 1)
	if other {
		r.plan(delay)
		return
	}
	delay += max(0, time.Until(r.last.Add(spread)))
	if r.failures == 0 && time.Now().Add(delay).Before(r.next) {
		r.plan(delay)
	}
}

// Run sends reports until ctx ends. After a failure it tries again with growing delays, each time
// with a new report. It logs the first failure of a series, the first with other settings, and the end
// of the series.
func (r *Reporter) Run(ctx context.Context) {
	defer r.client.CloseIdleConnections()
	state := run{timer: time.NewTimer(0)}
	defer state.timer.Stop()
	state.refresh(r.options.Settings())
	state.changed(true)
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.changed:
			state.changed(state.refresh(r.options.Settings()))
			continue
		case <-state.timer.C:
		}
		if state.refresh(r.options.Settings()); !state.on {
			continue // until the settings change
		}
		state.last = time.Now()
		again, err := r.send(ctx, state.settings)
		if ctx.Err() != nil {
			return
		}
		state.plan(max(r.ended(&state, err), again))
	}
}

// ended records the end of an attempt, and returns the delay of the next one.
func (r *Reporter) ended(state *run, err error) time.Duration {
	every := state.settings.Every
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		problem := truncate.Text(err.Error(), truncate.Least)
		r.options.Count(observe.ReportFailed)
		if !state.logged {
			r.options.Logger.Warn("send report", slog.String("error", problem))
		}
		state.failures, state.logged = state.failures+1, true
		r.status.Failed, r.status.Problem, r.status.Failures = time.Now(), problem, state.failures
		return retryDelay(state.failures, every)
	}
	r.options.Count(observe.ReportDelivered)
	if state.failures > 0 {
		r.options.Logger.Info("reports delivered again", slog.Int("failures", state.failures))
	}
	state.failures, state.logged = 0, false
	r.status = Status{Delivered: time.Now()}
	return every - every/10 + rand.N(every/5+1)
}

// retryDelay returns the delay after a number of failures in a row: it doubles each time up to the
// time between two reports, and a random half of it is left out.
func retryDelay(failures int, every time.Duration) time.Duration {
	delay := min(minDelay<<min(failures-1, 20), every)
	return delay/2 + rand.N(delay/2+1)
}

// send makes one attempt. again is the delay that the receiver asks for.
func (r *Reporter) send(ctx context.Context, s Settings) (again time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	body, err := json.Marshal(r.options.Report())
	if err != nil {
		return 0, fmt.Errorf("encode report: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL, bytes.NewReader(body))
	if err != nil {
		return 0, errors.New("the URL is not valid")
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", "mcpd")
	if s.Token != "" {
		token, err := r.options.Secret(ctx, s.Token)
		if err != nil {
			return 0, fmt.Errorf("read token: %w", err)
		}
		if token == "" || strings.ContainsFunc(token, func(c rune) bool { return c <= ' ' || c > '~' }) {
			return 0, fmt.Errorf("the secret %s cannot be a bearer token", s.Token)
		}
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := r.client.Do(request)
	if err != nil {
		return 0, fmt.Errorf("post report: %w", postError(err))
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, maxResponse)) // so that the connection is used again
	if response.StatusCode < 200 || response.StatusCode > 299 {
		return retryAfter(response), fmt.Errorf("the server answered %d %s", response.StatusCode, http.StatusText(response.StatusCode))
	}
	return 0, nil
}

// postError returns an error without the URL and without content of the response: the transport quotes
// a malformed one, in which a hostile server may repeat the token.
func postError(err error) error {
	var network *net.OpError
	var certificate *tls.CertificateVerificationError
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return errors.New("the server did not answer in time")
	case errors.As(err, &network):
		return network
	case errors.As(err, &certificate):
		return certificate
	case errors.Is(err, http.ErrSchemeMismatch):
		return http.ErrSchemeMismatch
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("the server closed the connection")
	}
	return errors.New("the server sent no valid response")
}

// retryAfter returns the seconds of a Retry-After header; 0 without one, and for a date.
func retryAfter(r *http.Response) time.Duration {
	seconds, err := strconv.ParseUint(r.Header.Get("Retry-After"), 10, 16)
	if err != nil {
		return 0
	}
	return min(time.Duration(seconds)*time.Second, maxRetryAfter)
}
