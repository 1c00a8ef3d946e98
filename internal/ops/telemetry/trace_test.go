package telemetry_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	coltracepb "go.opentelemetry.io/proto/slim/otlp/collector/trace/v1"

	"github.com/mcpd/mcpd/internal/base/observe"
	"github.com/mcpd/mcpd/internal/ops/telemetry"
)

const (
	parentOfMeta   = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	parentOfHeader = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
)

func hexOf(b []byte) string { return hex.EncodeToString(b) }

func TestTracer_exportsCall(t *testing.T) {
	c := collect(t, http.StatusOK, nil)
	tel := start(t, telemetry.Options{Service: "crm", Version: "1.2", LookupEnv: environment("OTEL_EXPORTER_OTLP_ENDPOINT", c.URL+"/base",
		"OTEL_EXPORTER_OTLP_HEADERS", "X-Tenant=a%20b", "OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test")})
	_, span := tel.Tracer().Start(t.Context(), observe.Call{Method: "tools/call", ID: "c1", RequestID: "r1", Via: "client",
		Parent: observe.Parent(parentOfMeta, "a=b"), Carrier: observe.Parent(parentOfHeader, "")})
	span.Found("refund")
	policy := span.Child("policy")
	policy.Attr(observe.Policy, "small_refunds_only")
	policy.End()
	request := span.Client("http.request")
	request.Fail("UNAVAILABLE")
	request.End()
	span.Fail("EXECUTION_ERROR")
	span.End()
	if err := tel.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := c.arrived(t)
	if got.path != "/base/v1/traces" || got.header.Get("X-Tenant") != "a b" || got.header.Get("Content-Type") != "application/x-protobuf" {
		t.Errorf("request to %s with %v", got.path, got.header)
	}
	want := map[string]shape{
		"tools/call refund": {Name: "tools/call refund", Kind: "SPAN_KIND_SERVER", Parent: "00f067aa0ba902b7", Failed: true, Links: 1, Attributes: map[string]string{
			"mcp.method.name": "tools/call", "mcpd.call.id": "c1", "mcpd.request.id": "r1", "mcpd.call.via": "client",
			"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "refund", "error.type": "tool_error", "mcpd.error.code": "EXECUTION_ERROR"}},
		"policy":       {Name: "policy", Kind: "SPAN_KIND_INTERNAL", Parent: "tools/call refund", Attributes: map[string]string{"mcpd.policy.name": "small_refunds_only"}},
		"http.request": {Name: "http.request", Kind: "SPAN_KIND_CLIENT", Parent: "tools/call refund", Failed: true, Attributes: map[string]string{"error.type": "UNAVAILABLE"}},
	}
	if diff := cmp.Diff(want, shapes(got)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	wantResource := map[string]string{"service.name": "crm", "service.instance.id": "random UUID", "service.version": "1.2", "deployment.environment.name": "test"}
	if diff := cmp.Diff(wantResource, resourceOf(got.body)); diff != "" {
		t.Errorf("resource (-want +got)\n%s", diff)
	}
	for _, s := range got.body.GetResourceSpans()[0].GetScopeSpans()[0].GetSpans() {
		if hexOf(s.GetTraceId()) != "4bf92f3577b34da6a3ce929d0e0e4736" || s.GetTraceState() != "a=b" {
			t.Errorf("%s has trace %x with state %q", s.GetName(), s.GetTraceId(), s.GetTraceState())
		}
	}
}

var randomUUID = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)

func resourceOf(r *coltracepb.ExportTraceServiceRequest) map[string]string {
	got := map[string]string{}
	for _, a := range r.GetResourceSpans()[0].GetResource().GetAttributes() {
		got[a.GetKey()] = randomUUID.ReplaceAllString(a.GetValue().GetStringValue(), "random UUID")
	}
	return got
}

// The SDK adds process variables to every resource, and reads its sampler, limits and
// queue from them.
func TestSettings_injectedEnvironment(t *testing.T) {
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "stray=1")
	t.Setenv("OTEL_SERVICE_NAME", "stray")
	t.Setenv("OTEL_TRACES_SAMPLER", "always_off")
	t.Setenv("OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT", "0")
	t.Setenv("OTEL_SDK_DISABLED", "true")
	c := collect(t, http.StatusOK, nil)
	tel := start(t, telemetry.Options{Service: "crm", LookupEnv: environment("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", c.URL)})
	_, span := tel.Tracer().Start(t.Context(), observe.Call{Method: "tools/call"})
	span.End()
	if err := tel.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := c.arrived(t)
	if diff := cmp.Diff(map[string]string{"service.name": "crm", "service.instance.id": "random UUID"}, resourceOf(got.body)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if shapes(got)["tools/call"].Attributes["mcp.method.name"] == "" || got.path != "/" {
		t.Errorf("%+v at %s", shapes(got), got.path)
	}
}

func TestSettings_default(t *testing.T) {
	for name, lookup := range map[string]func(string) (string, bool){
		"no environment": nil,
		"other settings": environment("OTEL_SERVICE_NAME", "x", "OTEL_TRACES_SAMPLER", "always_on"),
		"none":           environment("OTEL_EXPORTER_OTLP_ENDPOINT", "http://localhost:1", "OTEL_TRACES_EXPORTER", "none"),
		"disabled":       environment("OTEL_EXPORTER_OTLP_ENDPOINT", "http://localhost:1", "OTEL_SDK_DISABLED", "TRUE"),
		"empty":          environment("OTEL_EXPORTER_OTLP_ENDPOINT", " "),
	} {
		tel := start(t, telemetry.Options{LookupEnv: lookup})
		if tel.Tracer().Traces() {
			t.Errorf("%s: tracing enabled", name)
		}
	}
}

func TestTracer_nilAllocations(t *testing.T) {
	var off observe.Tracer
	ctx := t.Context()
	parent := observe.Parent(parentOfMeta, "")
	if n := testing.AllocsPerRun(100, func() {
		inside, span := off.Start(ctx, observe.Call{Method: "tools/call", ID: "c", Parent: parent})
		part := span.Child("script")
		_, _ = off.Inject(part.In(inside))
		part.Attr(observe.Decision, observe.Allowed)
		part.Fail("TIMEOUT")
		part.End()
		span.Found("t")
		span.End()
	}); n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
}

func TestTracer_notSampled(t *testing.T) {
	tel := start(t, telemetry.Options{LookupEnv: environment("OTEL_TRACES_EXPORTER", "console")})
	tracer, ctx := tel.Tracer(), t.Context()
	parent := observe.Parent(strings.TrimSuffix(parentOfMeta, "01")+"00", "a=b")
	inside, span := tracer.Start(ctx, observe.Call{Method: "tools/call", Parent: parent})
	traceparent, state := tracer.Inject(span.Child("script").In(inside))
	if !strings.HasPrefix(traceparent, "00-4bf92f3577b34da6a3ce929d0e0e4736-") || !strings.HasSuffix(traceparent, "-00") || state != "a=b" {
		t.Errorf("propagated as %q with %q", traceparent, state)
	}
	const most = 6
	if n := testing.AllocsPerRun(100, func() {
		_, span := tracer.Start(ctx, observe.Call{Method: "tools/call", Parent: parent})
		span.Found("t")
		span.Child("policy").End()
		span.End()
	}); n > most {
		t.Errorf("%v allocations, want at most %d", n, most)
	}
}

func TestTracer_hostCallHeaders(t *testing.T) {
	for propagators, carried := range map[string]bool{"": true, "tracecontext,baggage": true, "baggage": false, "none": false} {
		tel := start(t, telemetry.Options{LookupEnv: environment("OTEL_TRACES_EXPORTER", "console", "OTEL_PROPAGATORS", propagators)})
		ctx, span := tel.Tracer().Start(t.Context(), observe.Call{Method: "tools/call"})
		request := span.Client("http.request")
		own, _ := tel.Tracer().Inject(ctx)
		of, _ := tel.Tracer().Inject(request.In(ctx))
		request.End()
		span.End()
		if carried != observe.Parent(of, "").Valid() || carried && (own == of || own[:36] != of[:36]) {
			t.Errorf("with propagators %q the call propagates %q and its request %q", propagators, own, of)
		}
	}
}

func TestConsole_oneLinePerSpan(t *testing.T) {
	var out bytes.Buffer
	tel := start(t, telemetry.Options{Service: "crm", Console: &out, LookupEnv: environment("OTEL_TRACES_EXPORTER", "console")})
	_, span := tel.Tracer().Start(t.Context(), observe.Call{Method: "prompts/get"})
	span.Found("incident")
	span.Child("policy").End()
	span.End()
	if err := tel.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	var lines []string
	for text := range strings.Lines(out.String()) {
		var l struct {
			Name     string
			Resource []struct{ Key string }
		}
		if err := json.Unmarshal([]byte(text), &l); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		lines = append(lines, fmt.Sprint(l.Name, l.Resource))
	}
	if diff := cmp.Diff([]string{"policy[{service.instance.id} {service.name}]", "prompts/get incident[{service.instance.id} {service.name}]"}, lines); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// Protobuf rejects a whole request for one invalid UTF-8 string.
func TestTracer_invalidUTF8(t *testing.T) {
	c := collect(t, http.StatusOK, nil)
	tel := start(t, telemetry.Options{LookupEnv: environment("OTEL_EXPORTER_OTLP_ENDPOINT", c.URL)})
	_, span := tel.Tracer().Start(t.Context(), observe.Call{Method: "tools/call", ID: "c\xff", RequestID: "r\xff" + strings.Repeat("é", 1000)})
	span.Found("t\xff")
	span.End()
	if err := tel.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := shapes(c.arrived(t))["tools/call t\uFFFD"]
	if got.Attributes["mcpd.call.id"] != "c\uFFFD" {
		t.Errorf("call id %q", got.Attributes["mcpd.call.id"])
	}
	id := got.Attributes["mcpd.request.id"]
	if !strings.HasPrefix(id, "r") || len(id) > 600 || len(id) < 200 {
		t.Errorf("request id with %d bytes: %.20q", len(id), id)
	}
}

func TestQueue_countsRejectedSpans(t *testing.T) {
	c := collect(t, http.StatusOK, &coltracepb.ExportTraceServiceResponse{PartialSuccess: &coltracepb.ExportTracePartialSuccess{RejectedSpans: 1}})
	tel := start(t, telemetry.Options{LookupEnv: environment("OTEL_EXPORTER_OTLP_ENDPOINT", c.URL)})
	_, span := tel.Tracer().Start(t.Context(), observe.Call{Method: "tools/call"})
	span.Child("policy").End()
	span.End()
	if err := tel.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := scrape(t, tel)
	if got[`mcpd_trace_spans_total{outcome="sent"}`] != "1" || got[`mcpd_trace_spans_total{outcome="refused"}`] != "1" {
		t.Errorf("sent %s, refused %s", got[`mcpd_trace_spans_total{outcome="sent"}`], got[`mcpd_trace_spans_total{outcome="refused"}`])
	}
}

func TestQueue_logsRejectionOnce(t *testing.T) {
	c := collect(t, http.StatusUnauthorized, nil)
	var log bytes.Buffer
	tel := start(t, telemetry.Options{Logger: slog.New(slog.NewTextHandler(&log, nil)), LookupEnv: environment("OTEL_EXPORTER_OTLP_ENDPOINT", c.URL+"/secret-path",
		"OTEL_EXPORTER_OTLP_HEADERS", "Authorization=Bearer%20canary", "OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "1")})
	for range 3 {
		_, span := tel.Tracer().Start(context.Background(), observe.Call{Method: "tools/call"})
		span.End()
		<-c.requests
	}
	if err := tel.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	said := log.String()
	if strings.Count(said, "export traces") != 1 || !strings.Contains(said, "status 401") || strings.Contains(said, "canary") || strings.Contains(said, "secret-path") {
		t.Errorf("log: %s", said)
	}
	if got := scrape(t, tel)[`mcpd_trace_spans_total{outcome="dropped"}`]; got != "3" {
		t.Errorf("%s spans counted as dropped, want 3", got)
	}
}

func TestOTLP_followsNoRedirect(t *testing.T) {
	elsewhere := collect(t, http.StatusOK, nil)
	c := httptest.NewServer(http.RedirectHandler(elsewhere.URL, http.StatusTemporaryRedirect))
	t.Cleanup(c.Close)
	tel := start(t, telemetry.Options{LookupEnv: environment("OTEL_EXPORTER_OTLP_ENDPOINT", c.URL, "OTEL_EXPORTER_OTLP_HEADERS", "X-Key=canary")})
	_, span := tel.Tracer().Start(t.Context(), observe.Call{Method: "tools/call"})
	span.End()
	if err := tel.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := len(elsewhere.requests); n != 0 {
		t.Errorf("%d requests followed the redirect", n)
	}
}

func TestQueue_collectorDown(t *testing.T) {
	c := collect(t, http.StatusOK, nil)
	url := c.URL
	c.Close()
	tel := start(t, telemetry.Options{LookupEnv: environment("OTEL_EXPORTER_OTLP_ENDPOINT", url, "OTEL_BSP_MAX_QUEUE_SIZE", "10", "OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "10")})
	const made = 1000
	for range made {
		_, span := tel.Tracer().Start(t.Context(), observe.Call{Method: "tools/call"})
		span.End()
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := tel.Close(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("close returned %v", err)
	}
	if got := scrape(t, tel)[`mcpd_trace_spans_total{outcome="dropped"}`]; got != fmt.Sprint(made) {
		t.Errorf("%s spans counted as dropped, want %d", got, made)
	}
}
