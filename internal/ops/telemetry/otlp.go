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
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// otlp is the [otlptrace.Client] for OTLP over HTTP with protobuf. The OpenTelemetry
// client, otlptracehttp, links gRPC.
type otlp struct {
	// fixed at creation
	client   *http.Client
	url      string
	header   http.Header
	gzip     bool
	timeout  time.Duration // of one attempt
	resource *resourcepb.Resource
}

// Bounds of the retry backoff, which the protocol leaves to clients, and the maximum
// size of a response.
const (
	minBackoff    = time.Second
	maxBackoff    = 10 * time.Second
	responseBytes = 64 << 10
)

// otlp returns the client that the variables describe, or nil if one of them is
// invalid.
func (e *environment) otlp(resource []attribute.KeyValue) *otlp {
	e.choice(otlpVars("PROTOCOL"), "http/protobuf")
	compression := e.choice(otlpVars("COMPRESSION"), "none", "gzip")
	timeout := e.milliseconds(10*time.Second, otlpVars("TIMEOUT")...)
	header, endpoint, security := e.headers(), e.endpoint(), e.tls()
	if len(e.wrong) > 0 {
		return nil
	}
	client := &http.Client{
		Transport: &http.Transport{TLSClientConfig: security, ForceAttemptHTTP2: true, MaxIdleConns: 2, IdleConnTimeout: 90 * time.Second},
		// A header with a secret must only go to the configured collector.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	header.Set("Content-Type", "application/x-protobuf")
	if compression == "gzip" {
		header.Set("Content-Encoding", "gzip")
	}
	return &otlp{client: client, url: endpoint, header: header, gzip: compression == "gzip", timeout: timeout, resource: encodeResource(resource)}
}

func encodeResource(attributes []attribute.KeyValue) *resourcepb.Resource {
	r := &resourcepb.Resource{}
	for _, a := range attributes {
		value := &commonpb.AnyValue_StringValue{StringValue: valid(a.Value.AsString())}
		r.Attributes = append(r.Attributes, &commonpb.KeyValue{Key: string(a.Key), Value: &commonpb.AnyValue{Value: value}})
	}
	return r
}

func (e *environment) tls() *tls.Config {
	before := len(e.wrong)
	roots, key, certificate := e.file(otlpVars("CERTIFICATE")...), e.file(otlpVars("CLIENT_KEY")...), e.file(otlpVars("CLIENT_CERTIFICATE")...)
	if len(e.wrong) > before {
		return nil
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if roots != nil {
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(roots) {
			_, name := e.text(otlpVars("CERTIFICATE")...)
			e.refuse(name, "the file holds no certificate in PEM form")
		}
	}
	if key == nil && certificate == nil {
		return config
	}
	client, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		_, name := e.text(otlpVars("CLIENT_CERTIFICATE")...)
		e.refuse(name, "give it a certificate in PEM form, and the variable of the client key the key of it")
	}
	config.Certificates = []tls.Certificate{client}
	return config
}

// Start does nothing: the first request connects.
func (o *otlp) Start(context.Context) error { return nil }

func (o *otlp) Stop(context.Context) error {
	o.client.CloseIdleConnections()
	return nil
}

// UploadTraces sends spans to the collector. Until ctx is done, it retries failures
// that the protocol allows to retry (OTLP/HTTP Response). The error is a [partial] if
// the collector rejected some spans.
func (o *otlp) UploadTraces(ctx context.Context, spans []*tracepb.ResourceSpans) error {
	body, err := o.encode(spans)
	if err != nil {
		return fmt.Errorf("encode spans: %w", err)
	}
	for backoff := minBackoff; ; backoff = min(backoff*2, maxBackoff) {
		err := o.attempt(ctx, body)
		again, ok := errors.AsType[retryable](err)
		if !ok {
			return err
		}
		timer := time.NewTimer(max(again.after, backoff/2+rand.N(backoff)))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return err
		}
	}
}

// encode returns the request body. TracesData has the wire format of
// ExportTraceServiceRequest, whose package links gRPC.
func (o *otlp) encode(spans []*tracepb.ResourceSpans) ([]byte, error) {
	for _, r := range spans {
		r.Resource = o.resource // without the attributes that the SDK adds from the process environment
		for _, scope := range r.GetScopeSpans() {
			for _, s := range scope.GetSpans() {
				makeValid(s)
			}
		}
	}
	body, err := proto.Marshal(&tracepb.TracesData{ResourceSpans: spans})
	if err != nil || !o.gzip {
		return body, err
	}
	var compressed bytes.Buffer
	writer := gzip.NewWriter(&compressed)
	if _, err := writer.Write(body); err != nil {
		return nil, err
	}
	if err := writer.Close(); err != nil {
		return nil, err
	}
	return compressed.Bytes(), nil
}

// makeValid replaces invalid UTF-8, for which protobuf rejects a whole request.
func makeValid(s *tracepb.Span) {
	s.Name = valid(s.GetName())
	for _, a := range s.GetAttributes() {
		if text, ok := a.GetValue().GetValue().(*commonpb.AnyValue_StringValue); ok {
			text.StringValue = valid(text.StringValue)
		}
	}
}

func valid(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// retryable is a failure after which the same request may be sent again.
type retryable struct {
	error
	after time.Duration // from Retry-After; 0 without one
}

func (r retryable) Unwrap() error { return r.error }

// partial is the number of spans that the collector rejected in an accepted request.
type partial struct{ rejected int64 }

func (p partial) Error() string { return fmt.Sprintf("the collector rejected %d spans", p.rejected) }

func (o *otlp) attempt(ctx context.Context, body []byte) error {
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, o.url, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("call the collector: %w", withoutURL(err))
	}
	request.Header = o.header
	response, err := o.client.Do(request)
	if err != nil {
		return retryable{error: fmt.Errorf("call the collector: %w", withoutURL(err))}
	}
	defer func() { _ = response.Body.Close() }() // reading only
	text, err := io.ReadAll(io.LimitReader(response.Body, responseBytes))
	if err != nil {
		return retryable{error: fmt.Errorf("read the response of the collector: %w", withoutURL(err))}
	}
	switch response.StatusCode {
	case http.StatusOK, http.StatusAccepted, http.StatusNoContent:
		if n := rejectedSpans(text); n > 0 {
			return partial{rejected: n}
		}
		return nil
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return retryable{fmt.Errorf("the collector responded with status %d", response.StatusCode), retryAfter(response.Header.Get("Retry-After"))}
	default:
		return fmt.Errorf("the collector responded with status %d", response.StatusCode)
	}
}

// rejectedSpans returns ExportTraceServiceResponse.partial_success.rejected_spans, or 0
// if it is missing or the text is invalid.
func rejectedSpans(text []byte) int64 {
	success, _ := protowire.ConsumeBytes(field(text, protowire.BytesType))
	n, size := protowire.ConsumeVarint(field(success, protowire.VarintType))
	if size < 0 {
		return 0
	}
	return int64(n)
}

// field returns a message from the value of its field 1 on, or nil without a field of
// that type.
func field(message []byte, of protowire.Type) []byte {
	for len(message) > 0 {
		number, kind, size := protowire.ConsumeTag(message)
		if size < 0 {
			return nil
		}
		if message = message[size:]; number == 1 && kind == of {
			return message
		}
		if size = protowire.ConsumeFieldValue(number, kind, message); size < 0 {
			return nil
		}
		message = message[size:]
	}
	return nil
}

// retryAfter returns the seconds of a Retry-After header. A date counts as none: the
// backoff applies.
func retryAfter(header string) time.Duration {
	seconds, err := strconv.ParseUint(strings.TrimSpace(header), 10, 16)
	if err != nil {
		return 0
	}
	return time.Duration(seconds) * time.Second
}

// withoutURL returns an error without the URL of the request, which may contain a
// secret.
func withoutURL(err error) error {
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		return wrapped.Err
	}
	return err
}
