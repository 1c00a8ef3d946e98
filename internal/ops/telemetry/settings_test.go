package telemetry_test

import (
	"crypto/tls"
	"encoding/pem"
	"fmt"
	"io/fs"
	"net/http"
	"strings"
	"testing"

	"github.com/mcpd/mcpd/internal/base/observe"
	"github.com/mcpd/mcpd/internal/ops/telemetry"
)

func TestSettings_invalidValue(t *testing.T) {
	for variable, values := range map[string][]string{
		"OTEL_SDK_DISABLED":                  {"canary"},
		"OTEL_TRACES_EXPORTER":               {"canary", "otlp,console"},
		"OTEL_TRACES_SAMPLER":                {"canary", "xray"},
		"OTEL_PROPAGATORS":                   {"canary", "tracecontext,canary", "b3"},
		"OTEL_RESOURCE_ATTRIBUTES":           {"canary", "=canary", "a=%zz", "a=%00canary"},
		"OTEL_BSP_MAX_QUEUE_SIZE":            {"canary", "0", "-1", "1e3", "99999999999999999999"},
		"OTEL_BSP_MAX_EXPORT_BATCH_SIZE":     {"0", "4096"},
		"OTEL_BSP_SCHEDULE_DELAY":            {"canary", "5s", "-1"},
		"OTEL_BSP_EXPORT_TIMEOUT":            {"canary"},
		"OTEL_EXPORTER_OTLP_ENDPOINT":        {"canary", "localhost:4317", "ftp://canary", "http://u:canary@h", "http://[canary"},
		"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": {"canary"},
		"OTEL_EXPORTER_OTLP_HEADERS":         {"canary", "a b=canary", "a=%0d%0acanary", "a=canary%zz"},
		"OTEL_EXPORTER_OTLP_TRACES_HEADERS":  {"canary"},
		"OTEL_EXPORTER_OTLP_TIMEOUT":         {"canary", "0"},
		"OTEL_EXPORTER_OTLP_PROTOCOL":        {"grpc", "http/json"},
		"OTEL_EXPORTER_OTLP_COMPRESSION":     {"canary"},
		"OTEL_EXPORTER_OTLP_CERTIFICATE":     {"missing.pem", "no.pem"},
		"OTEL_EXPORTER_OTLP_CLIENT_KEY":      {"missing.pem"},
	} {
		for _, value := range values {
			_, err := telemetry.New(telemetry.Options{LookupEnv: environment("OTEL_TRACES_EXPORTER", "otlp", variable, value), ReadFile: read(map[string][]byte{"no.pem": []byte("canary")})})
			if err == nil || !strings.Contains(err.Error(), variable) || strings.Contains(err.Error(), "canary") {
				t.Errorf("%s=%s: %v", variable, value, err)
			}
		}
	}
}

func TestSettings_allErrors(t *testing.T) {
	_, err := telemetry.New(telemetry.Options{LookupEnv: environment("OTEL_BSP_EXPORT_TIMEOUT", "x", "OTEL_TRACES_SAMPLER", "traceidratio", "OTEL_TRACES_SAMPLER_ARG", "1.5")})
	const want = "environment variable OTEL_TRACES_SAMPLER_ARG: write a number from 0 to 1\n" +
		"environment variable OTEL_BSP_EXPORT_TIMEOUT: write a whole number from 1 to 3600000"
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

func read(files map[string][]byte) func(string) ([]byte, error) {
	return func(name string) ([]byte, error) {
		if content, ok := files[name]; ok {
			return content, nil
		}
		return nil, fmt.Errorf("open %s: %w", name, fs.ErrNotExist)
	}
}

func TestSampler(t *testing.T) {
	sampled, not := observe.Parent(parentOfMeta, ""), observe.Parent(parentOfMeta[:53]+"00", "")
	for sampler, want := range map[string]string{ // without a parent, with a sampled one, with an unsampled one
		"": "110", "parentbased_always_on": "110", "parentbased_always_off": "010", "parentbased_traceidratio 0": "010", "parentbased_traceidratio": "110",
		"always_on": "111", "always_off": "000", "traceidratio 0": "000", "traceidratio 1": "111", "TraceIdRatio 0.0": "000",
	} {
		kind, argument, _ := strings.Cut(sampler, " ")
		tel := start(t, telemetry.Options{LookupEnv: environment("OTEL_TRACES_EXPORTER", "console", "OTEL_TRACES_SAMPLER", kind, "OTEL_TRACES_SAMPLER_ARG", argument)})
		got := ""
		for _, parent := range []observe.SpanContext{{}, sampled, not} {
			ctx, span := tel.Tracer().Start(t.Context(), observe.Call{Method: "tools/call", Parent: parent})
			span.End()
			traceparent, _ := tel.Tracer().Inject(ctx)
			got += traceparent[len(traceparent)-1:]
		}
		// The second flag marks a random trace id.
		if got = strings.NewReplacer("2", "0", "3", "1").Replace(got); got != want {
			t.Errorf("%q sampled %s, want %s", sampler, got, want)
		}
	}
}

func TestOTLP_gzipAndMutualTLS(t *testing.T) {
	c := newCollector(t, http.StatusOK, nil)
	c.secure(t, &tls.Config{ClientAuth: tls.RequireAnyClientCert})
	own := c.TLS.Certificates[0]
	key := keyOf(t, own)
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: own.Certificate[0]})
	tel := start(t, telemetry.Options{ReadFile: read(map[string][]byte{"ca.pem": certificate, "client.pem": certificate, "client.key": key}), LookupEnv: environment(
		"OTEL_EXPORTER_OTLP_ENDPOINT", c.URL, "OTEL_EXPORTER_OTLP_CERTIFICATE", "ca.pem", "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE", "client.pem",
		"OTEL_EXPORTER_OTLP_TRACES_CLIENT_KEY", "client.key", "OTEL_EXPORTER_OTLP_COMPRESSION", "gzip", "OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf")})
	_, span := tel.Tracer().Start(t.Context(), observe.Call{Method: "resources/read"})
	span.Found("runbook")
	span.End()
	if err := tel.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := c.arrived(t)
	if got.header.Get("Content-Encoding") != "gzip" || shapes(got)["resources/read"].Attributes["mcpd.item.name"] != "runbook" {
		t.Errorf("%v with %v", shapes(got), got.header)
	}
}
