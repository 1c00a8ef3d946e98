package telemetry_test

import (
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	coltracepb "go.opentelemetry.io/proto/slim/otlp/collector/trace/v1"
	tracepb "go.opentelemetry.io/proto/slim/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/mcpd/mcpd/internal/ops/telemetry"
)

// collector is a fake OpenTelemetry collector.
type collector struct {
	*httptest.Server
	requests chan request // decoded requests
}

type request struct {
	path   string
	header http.Header
	body   *coltracepb.ExportTraceServiceRequest
}

// collect starts a collector that responds with a status, and with answer if that is
// 200.
func collect(t *testing.T, status int, answer *coltracepb.ExportTraceServiceResponse) *collector {
	t.Helper()
	c := newCollector(t, status, answer)
	c.Start()
	return c
}

func newCollector(t *testing.T, status int, answer *coltracepb.ExportTraceServiceResponse) *collector {
	c := &collector{requests: make(chan request, 100)}
	c.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got := request{path: r.URL.RequestURI(), header: r.Header, body: &coltracepb.ExportTraceServiceRequest{}}
		body := io.Reader(r.Body)
		if r.Header.Get("Content-Encoding") == "gzip" {
			zipped, err := gzip.NewReader(r.Body)
			if err != nil {
				t.Errorf("body not compressed: %v", err)
				return
			}
			body = zipped
		}
		text, err := io.ReadAll(body)
		if err != nil {
			t.Error(err)
		}
		if err := proto.Unmarshal(text, got.body); err != nil {
			t.Errorf("invalid request body: %v", err)
		}
		c.requests <- got
		said, err := proto.Marshal(answer)
		if err != nil {
			t.Error(err)
		}
		w.WriteHeader(status)
		_, _ = w.Write(said) // the client may be gone
	}))
	t.Cleanup(c.Close)
	return c
}

func (c *collector) secure(t *testing.T, config *tls.Config) {
	t.Helper()
	c.TLS = config
	c.StartTLS()
}

// arrived returns the next request.
func (c *collector) arrived(t *testing.T) request {
	t.Helper()
	select {
	case r := <-c.requests:
		return r
	default:
		t.Fatal("no request arrived")
		return request{}
	}
}

// environment returns a lookup function for name and value pairs.
func environment(pairs ...string) func(string) (string, bool) {
	values := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		values[pairs[i]] = pairs[i+1]
	}
	return func(name string) (string, bool) {
		value, ok := values[name]
		return value, ok
	}
}

// start returns telemetry that is closed at the end of the test.
func start(t testing.TB, o telemetry.Options) *telemetry.Telemetry {
	t.Helper()
	tel, err := telemetry.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := tel.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return tel
}

// shape is the part of a span that tests compare.
type shape struct {
	Name, Kind string
	Parent     string // name of the parent, or its id if it is not in the request
	Failed     bool
	Attributes map[string]string
	Links      int
}

// shapes returns the spans of a request by name.
func shapes(r request) map[string]shape {
	names := map[string]string{}
	spans := r.body.GetResourceSpans()[0].GetScopeSpans()[0].GetSpans()
	for _, s := range spans {
		names[string(s.GetSpanId())] = s.GetName()
	}
	all := map[string]shape{}
	for _, s := range spans {
		got := shape{Name: s.GetName(), Kind: s.GetKind().String(), Links: len(s.GetLinks()), Attributes: map[string]string{}}
		got.Failed = s.GetStatus().GetCode() == tracepb.Status_STATUS_CODE_ERROR
		if id := s.GetParentSpanId(); len(id) > 0 {
			if got.Parent = names[string(id)]; got.Parent == "" {
				got.Parent = hexOf(id)
			}
		}
		for _, a := range s.GetAttributes() {
			got.Attributes[a.GetKey()] = a.GetValue().GetStringValue()
		}
		all[s.GetName()] = got
	}
	return all
}

// keyOf returns the private key of a certificate in PEM format.
func keyOf(t *testing.T, certificate tls.Certificate) []byte {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(certificate.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}
