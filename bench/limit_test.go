package bench

import (
	"testing"
	"testing/fstest"

	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/internal/process/cputest"
)

// limitedServer is addServer with the limits of a configuration file.
func limitedServer(tb testing.TB, config string) *engine.Server {
	return load(tb, engine.Options{
		Files: engine.Files{
			Tools:  fstest.MapFS{"add.hcl": {Data: []byte(twoArguments), Mode: 0o644}},
			Config: fstest.MapFS{"mcpd.hcl": {Data: []byte(config), Mode: 0o644}},
		},
	})
}

const (
	noLimit    = "# nothing\n"
	otherLimit = "limit \"l\" {\n  prompts = [\"*\"]\n  key = \"principal.id\"\n  rate = \"1000000/s\"\n}\n"
	noKey      = "limit \"l\" {\n  rate = \"1000000/s\"\n  concurrency = 4\n}\n"
	oneLimit   = "limit \"l\" {\n  key = \"principal.id\"\n  rate = \"1000000/s\"\n  concurrency = 4\n}\n"
)

// TestLimit_allocations checks that a limit costs nothing where it does not apply. A
// key that reads principal.id costs one more allocation than the counter, for the
// issuer of the id.
func TestLimit_allocations(t *testing.T) {
	if cputest.Race() {
		t.Skip("pools drop entries under the race detector")
	}
	allocs := func(config string) float64 {
		s := limitedServer(t, config)
		return testing.AllocsPerRun(500, func() {
			if r := s.Execute(t.Context(), addRequest); r.Err != nil {
				t.Fatal(r.Err)
			}
		})
	}
	none, other, unkeyed, one := allocs(noLimit), allocs(otherLimit), allocs(noKey), allocs(oneLimit)
	if other > none {
		t.Errorf("a limit of other tools costs %.0f allocations per call", other-none)
	}
	if unkeyed > none+2 {
		t.Errorf("a limit costs %.0f allocations per call", unkeyed-none)
	}
	if one > none+3 {
		t.Errorf("a limit by principal.id costs %.0f allocations per call", one-none)
	}
}

// BenchmarkLimitedCall is BenchmarkCall under one limit.
func BenchmarkLimitedCall(b *testing.B) {
	s := limitedServer(b, oneLimit)
	b.ReportAllocs()
	for b.Loop() {
		if r := s.Execute(b.Context(), addRequest); r.Err != nil {
			b.Fatal(r.Err)
		}
	}
}
