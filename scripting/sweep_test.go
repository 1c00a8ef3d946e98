package scripting

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
)

// compileBudget is the CPU time that no body may take to compile or to be
// refused. The budgets of the design, 250 and 20 ms, are told by the log of
// this test; this one only tells blow-ups from noise.
const compileBudget = time.Second

func TestNoConstructStallsTheCompiler(t *testing.T) {
	var slowest, slowestRefused time.Duration
	var worst, worstRefused string
	for _, n := range []int{10, 100, 1_000, 4_000, 10_000, 30_000, 60_000, 1_000_000} {
		if (testing.Short() || raceDetector) && n > 4_000 {
			break
		}
		bodies := repeated(n)
		maps.Copy(bodies, numbered(n))
		for _, name := range slices.Sorted(maps.Keys(bodies)) {
			for _, language := range []Language{JS, TS} {
				if language == JS && strings.HasPrefix(name, "ts") {
					continue
				}
				src := tool(bodies[name])
				src.Language, src.Import = language, importing(map[string]string{"a.js": "export default 1"})
				began := cpuTime()
				p, _ := Compile(src)
				took := cpuTime() - began
				if took > compileBudget*slowdown {
					t.Errorf("%s × %d took %v of CPU time", name, n, took)
				}
				if p != nil && took > slowest {
					slowest, worst = took, name
				}
				if p == nil && took > slowestRefused {
					slowestRefused, worstRefused = took, name
				}
			}
		}
	}
	t.Logf("accepted: at most %v (%s); refused: at most %v (%s)", slowest, worst, slowestRefused, worstRefused)
}
