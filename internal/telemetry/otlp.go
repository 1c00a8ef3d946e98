package telemetry

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	coltracepb "go.opentelemetry.io/proto/slim/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"
)

// otlp sends spans to a collector by OTLP/HTTP with protobuf (OpenTelemetry
// Protocol, OTLP/HTTP).
type otlp struct {
	// fixed at creation
	client   *http.Client
	url      string
	header   http.Header
	zipped   bool
	timeout  time.Duration // that of one attempt
	resource []attribute.KeyValue
}

// The pause before the first repetition and the longest one, as the protocol
// leaves them to us; and the most of an answer that is read.
const (
	firstPause  = time.Second
	longPause   = 10 * time.Second
	answerBytes = 64 << 10
)

// otlp returns the exporter that the variables describe.
func (e environment) otlp(a *all, resource []attribute.KeyValue) exporter {
	must2(a, func() (string, error) { return e.choice(forTraces("PROTOCOL"), "http/protobuf") })
	compression := must2(a, func() (string, error) { return e.choice(forTraces("COMPRESSION"), "none", "gzip") })
	timeout := must2(a, func() (time.Duration, error) { return e.milliseconds(10*time.Second, forTraces("TIMEOUT")...) })
	header := must2(a, e.headers)
	endpoint := must2(a, e.endpoint)
	security := must2(a, e.tls)
	if a.err() != nil {
		return nil
	}
	client := &http.Client{
		Transport: &http.Transport{TLSClientConfig: security, ForceAttemptHTTP2: true, MaxIdleConns: 2, IdleConnTimeout: 90 * time.Second},
		// A header with a secret goes to the collector that was named, and nowhere else.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	header.Set("Content-Type", "application/x-protobuf")
	if compression == "gzip" {
		header.Set("Content-Encoding", "gzip")
	}
	return &otlp{client: client, url: endpoint.String(), header: header, zipped: compression == "gzip", timeout: timeout, resource: resource}
}

// tls returns the certificates of the connection.
func (e environment) tls() (*tls.Config, error) {
	var a all
	roots := must2(&a, func() ([]byte, error) { return e.file(forTraces("CERTIFICATE")...) })
	key := must2(&a, func() ([]byte, error) { return e.file(forTraces("CLIENT_KEY")...) })
	certificate := must2(&a, func() ([]byte, error) { return e.file(forTraces("CLIENT_CERTIFICATE")...) })
	if a.err() != nil {
		return nil, a.err()
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if roots != nil {
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(roots) {
			_, name := e.text(forTraces("CERTIFICATE")...)
			return nil, fmt.Errorf("environment variable %s: the file holds no certificate in PEM form", name)
		}
	}
	if key == nil && certificate == nil {
		return config, nil
	}
	client, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		_, name := e.text(forTraces("CLIENT_CERTIFICATE")...)
		return nil, fmt.Errorf("environment variable %s: give it a certificate in PEM form, and the variable of the client key the key of it", name)
	}
	config.Certificates = []tls.Certificate{client}
	return config, nil
}

// export sends spans, again and again until ctx is done where the protocol allows
// that (OTLP/HTTP Response). It returns how many of them the collector refused.
func (o *otlp) export(ctx context.Context, spans []sdktrace.ReadOnlySpan) (refused int, err error) {
	body, err := o.body(spans)
	if err != nil {
		return 0, err
	}
	for pause := firstPause; ; pause = min(pause*2, longPause) {
		var again retry
		if refused, err = o.attempt(ctx, body); !errors.As(err, &again) {
			return refused, err
		}
		if waitErr := wait(ctx, max(again.after, pause/2+rand.N(pause))); waitErr != nil {
			return 0, err
		}
	}
}

func (o *otlp) close() { o.client.CloseIdleConnections() }

// body returns the request for spans.
func (o *otlp) body(spans []sdktrace.ReadOnlySpan) ([]byte, error) {
	body, err := proto.Marshal(request(o.resource, spans))
	if err != nil {
		return nil, fmt.Errorf("encode spans: %w", err)
	}
	if !o.zipped {
		return body, nil
	}
	var zipped bytes.Buffer
	writer := gzip.NewWriter(&zipped)
	if _, err := writer.Write(body); err != nil {
		return nil, fmt.Errorf("compress spans: %w", err)
	}
	if err := writer.Close(); err != nil {
		return nil, fmt.Errorf("compress spans: %w", err)
	}
	return zipped.Bytes(), nil
}

// retry is a failure after which the same request may be sent again.
type retry struct {
	err   error
	after time.Duration // what the collector asked for; 0 when nothing
}

func (r retry) Error() string { return r.err.Error() }
func (r retry) Unwrap() error { return r.err }

func (o *otlp) attempt(ctx context.Context, body []byte) (refused int, err error) {
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, o.url, bytes.NewReader(body))
	if err != nil {
		return 0, fmt.Errorf("ask the collector: %w", bare(err))
	}
	request.Header = o.header
	answer, err := o.client.Do(request)
	if err != nil {
		return 0, retry{err: fmt.Errorf("ask the collector: %w", bare(err))}
	}
	defer func() { _ = answer.Body.Close() }() // nothing is written to it
	text, err := io.ReadAll(io.LimitReader(answer.Body, answerBytes))
	if err != nil {
		return 0, retry{err: fmt.Errorf("read the answer of the collector: %w", bare(err))}
	}
	return verdict(answer, text)
}

// verdict tells what an answer means.
func verdict(answer *http.Response, text []byte) (refused int, err error) {
	switch answer.StatusCode {
	case http.StatusOK, http.StatusAccepted, http.StatusNoContent:
		var said coltracepb.ExportTraceServiceResponse
		if proto.Unmarshal(text, &said) != nil {
			return 0, nil // it took them all; what else it says is of no use
		}
		return int(said.GetPartialSuccess().GetRejectedSpans()), nil
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return 0, retry{err: fmt.Errorf("the collector answered with status %d", answer.StatusCode), after: after(answer.Header.Get("Retry-After"))}
	default:
		return 0, fmt.Errorf("the collector answered with status %d", answer.StatusCode)
	}
}

// after returns the seconds of a Retry-After header. Dates are not looked at: the
// pause of our own is as good.
func after(header string) time.Duration {
	seconds, err := strconv.ParseUint(strings.TrimSpace(header), 10, 16)
	if err != nil {
		return 0
	}
	return time.Duration(seconds) * time.Second
}

// bare returns an error without the URL of the request, which may hold a secret.
func bare(err error) error {
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		return wrapped.Err
	}
	return err
}

func wait(ctx context.Context, pause time.Duration) error {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
