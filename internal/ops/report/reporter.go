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
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/mcpd/mcpd/internal/base/observe"
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
	changed chan struct{} // receives a value when the state or the settings may have changed
}

const (
	// attemptTimeout bounds one attempt.
	attemptTimeout = 30 * time.Second
	// maxResponse bounds what is read of a response, which is ignored.
	maxResponse = 64 << 10
	// soon bounds the random delay of the first report and of one after a change, so that servers
	// which change together do not report together.
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
	transport.ResponseHeaderTimeout = attemptTimeout
	transport.MaxResponseHeaderBytes = maxResponse
	client := &http.Client{Transport: transport, Timeout: attemptTimeout, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse // the token is for the configured server only
	}}
	return &Reporter{options: o, client: client, changed: make(chan struct{}, 1)}
}

// Changed makes Run send a report soon, with the current settings. It does not block.
func (r *Reporter) Changed() {
	select {
	case r.changed <- struct{}{}:
	default:
	}
}

// Run sends reports until ctx ends. After a failure it tries again with growing delays, each time
// with a new report. It logs the first failure of a series, and the end of the series.
func (r *Reporter) Run(ctx context.Context) {
	defer r.client.CloseIdleConnections()
	timer := time.NewTimer(0)
	defer timer.Stop()
	settings, on := r.options.Settings()
	failures := 0
	timer.Reset(rand.N(min(settings.Every, soon) + 1))
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.changed:
			before := settings
			if settings, on = r.options.Settings(); failures == 0 || settings != before {
				timer.Reset(rand.N(min(settings.Every, soon) + 1))
			}
			continue
		case <-timer.C:
		}
		if !on {
			continue // until the settings change
		}
		delay := settings.Every - settings.Every/10 + rand.N(settings.Every/5+1)
		again, err := r.send(ctx, settings)
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			r.options.Count(observe.ReportDelivered)
			if failures > 0 {
				r.options.Logger.Info("reports delivered again", slog.Int("failures", failures))
			}
			failures = 0
		} else {
			r.options.Count(observe.ReportFailed)
			if failures == 0 {
				r.options.Logger.Warn("send report", slog.String("error", err.Error()))
			}
			failures++
			delay = max(retryDelay(failures, settings.Every), again)
		}
		timer.Reset(delay)
	}
}

// retryDelay returns the delay after a number of failures in a row: it doubles each time up to the
// time between two reports, and a random half of it is left out.
func retryDelay(failures int, every time.Duration) time.Duration {
	delay := min(minDelay<<min(failures-1, 20), every)
	return delay/2 + rand.N(delay/2+1)
}

// send makes one attempt. again is the delay that the receiver asks for.
func (r *Reporter) send(ctx context.Context, s Settings) (again time.Duration, err error) {
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
		var failed *url.Error
		if errors.As(err, &failed) {
			err = failed.Err
		}
		return 0, fmt.Errorf("post report: %w", err)
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, maxResponse)) // so that the connection is used again
	if response.StatusCode < 200 || response.StatusCode > 299 {
		return retryAfter(response), fmt.Errorf("the server answered %d %s", response.StatusCode, http.StatusText(response.StatusCode))
	}
	return 0, nil
}

// retryAfter returns the seconds of a Retry-After header; 0 without one, and for a date.
func retryAfter(r *http.Response) time.Duration {
	seconds, err := strconv.ParseUint(r.Header.Get("Retry-After"), 10, 16)
	if err != nil {
		return 0
	}
	return min(time.Duration(seconds)*time.Second, maxRetryAfter)
}
