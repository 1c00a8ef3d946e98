package telemetry_test

import (
	"context"
	"regexp"
	"strings"
	"testing"

	"github.com/mcpd/mcpd/internal/base/observe"
	"github.com/mcpd/mcpd/internal/ops/telemetry"
)

const well = "4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7"

func TestParent_traceparent(t *testing.T) {
	for text, want := range map[string]bool{
		"00-" + well + "-01":                  true,
		"00-" + well + "-00":                  true,
		"00-" + well + "-ff":                  true,
		"01-" + well + "-01":                  true,
		"fe-" + well + "-01-what-comes-later": true,
		"":                                    false,
		"ff-" + well + "-01":                  false,
		"00-" + well + "-01-x":                false,
		"00-" + well + "-01 ":                 false,
		" 00-" + well + "-01":                 false,
		"01-" + well + "-01x":                 false,
		"01-" + well + "-01-" + strings.Repeat("a", 999):                         false,
		"00-" + strings.ToUpper(well) + "-01":                                    false,
		"0A-" + well + "-01":                                                     false,
		"00_" + well + "-01":                                                     false,
		"00-" + strings.Repeat("0", 32) + "-00f067aa0ba902b7-01":                 false,
		"00-4bf92f3577b34da6a3ce929d0e0e4736-" + strings.Repeat("0", 16) + "-01": false,
		"00-" + well + "-0g":                                                     false,
		"00-" + well:                                                             false,
		"00-" + well + "-01\x00":                                                 false,
		"00-é" + well[2:] + "-01":                                                false,
		strings.Repeat("00-", 10000):                                             false,
	} {
		if got := observe.Parent(text, "").Valid(); got != want {
			t.Errorf("%.80q accepted: %v, want %v", text, got, want)
		}
	}
}

func TestParent_invalidTracestate(t *testing.T) {
	tel := start(t, telemetry.Options{LookupEnv: environment("OTEL_TRACES_EXPORTER", "console")})
	for state, want := range map[string]string{
		"a=1,b=2": "a=1,b=2", "": "", "a": "", "a=1,a=2": "", "A=1": "", "a=\x00": "", strings.Repeat("k", 300) + "=1": "",
		"a=" + strings.Repeat("v", 600): "", strings.Repeat(",", 400): "",
	} {
		parent := observe.Parent("00-"+well+"-01", state)
		ctx, span := tel.Tracer().Start(t.Context(), observe.Call{Method: "tools/call", Parent: parent})
		span.End()
		if traceparent, got := tel.Tracer().Inject(ctx); got != want || !strings.HasPrefix(traceparent, "00-"+well[:32]) {
			t.Errorf("%.40q propagated as %q with %q, want %q", state, got, traceparent, want)
		}
	}
}

// FuzzParent checks that an accepted traceparent is propagated in its trace, in the
// format of version 00.
func FuzzParent(f *testing.F) {
	tel, err := telemetry.New(telemetry.Options{LookupEnv: environment("OTEL_TRACES_EXPORTER", "console")})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = tel.Close(context.Background()) })
	f.Add("00-"+well+"-01", "a=1,b=2")
	f.Add("cc-"+well+"-01-later", "a@b=,c=\"")
	f.Add("00-"+well+"-01 ", strings.Repeat("a=1,", 200))
	form := regexp.MustCompile(`^00-[0-9a-f]{32}-[0-9a-f]{16}-0[0-3]$`)
	f.Fuzz(func(t *testing.T, traceparent, tracestate string) {
		parent := observe.Parent(traceparent, tracestate)
		if !parent.Valid() {
			return
		}
		ctx, span := tel.Tracer().Start(t.Context(), observe.Call{Method: "tools/call", Parent: parent})
		span.End()
		next, state := tel.Tracer().Inject(ctx)
		if !form.MatchString(next) || next[3:35] != traceparent[3:35] || next[36:52] == traceparent[36:52] {
			t.Errorf("%q propagated as %q", traceparent, next)
		}
		if len(state) > len(tracestate) || len(state) > 512 || strings.ContainsAny(state, "\r\n\x00") {
			t.Errorf("state %q propagated as %q", tracestate, state)
		}
		if again := observe.Parent(next, state); !again.Valid() {
			t.Errorf("%q not accepted", next)
		}
	})
}

func TestParent_boundedCost(t *testing.T) {
	for _, construct := range []string{"0", "00-", "-", "a=1,", ",", "é"} {
		for size := 10; size <= 1_000_000; size *= 10 {
			text := strings.Repeat(construct, size)
			if n := testing.AllocsPerRun(5, func() { _ = observe.Parent("00-"+well+"-01", text) }); n > 100 {
				t.Errorf("a tracestate of %d × %q allocates %v times", size, construct, n)
			}
			if n := testing.AllocsPerRun(5, func() { _ = observe.Parent(text, "") }); n > 0 {
				t.Errorf("a traceparent of %d × %q allocates %v times", size, construct, n)
			}
		}
	}
}
