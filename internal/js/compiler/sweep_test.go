package compiler

import (
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/process/cputest"
	"github.com/mcpd/mcpd/internal/process/osproc"
	"github.com/mcpd/mcpd/scripting/source"
)

// compileBudget is a CPU time that no script may take to compile or to be rejected: it separates
// blow-ups from noise. If MCPD_LONG is set, the budgets of the design apply, [acceptBudget] and
// [refuseBudget].
const compileBudget = time.Second

// The budgets of the design, on a machine of [cputest].
const (
	acceptBudget = 250 * time.Millisecond
	refuseBudget = 20 * time.Millisecond
)

// slowdown is the factor by which work may take longer under the race detector.
func slowdown() time.Duration {
	if cputest.Race() {
		return 20
	}
	return 1
}

// long reports whether the machine is otherwise idle, for long tests.
func long() bool { return os.Getenv("MCPD_LONG") != "" }

func TestSweep_constructs(t *testing.T) {
	sizes := []int{10, 1_000, 10_000, 60_000} // the last is above the limit of a script
	if long() {
		sizes = []int{10, 30, 100, 300, 600, 1_000, 2_000, 4_000, 8_000, 15_000, 30_000, 60_000, 1_000_000}
	}
	var slowest, slowestRefused time.Duration
	var worst, worstRefused string
	for _, n := range sizes {
		if testing.Short() && n > 100 || cputest.Race() && n > 1_000 {
			break
		}
		bodies := constructs(n)
		for _, name := range slices.Sorted(maps.Keys(bodies)) {
			for _, language := range []source.Language{source.JS, source.TS} {
				if language == source.JS && strings.HasPrefix(name, "ts") {
					continue
				}
				src := tool(bodies[name])
				src.Language, src.Import = language, importing(map[string]string{"a.js": "export default 1"})
				took, refusal := compileTime(src)
				if took > compileBudget*slowdown() {
					t.Errorf("%s × %d took %v of CPU time", name, n, took)
				}
				if budget := budgetOf(refusal); long() && took > budget && !cputest.Within(budget, func() time.Duration { took, _ := compileTime(src); return took }) {
					t.Errorf("%s %v × %d took %v of CPU time, more than %v; refused: %q", name, language, n, took, budget, refusal)
				}
				if refusal == "" && took > slowest {
					slowest, worst = took, name
				}
				if refusal != "" && took > slowestRefused {
					slowestRefused, worstRefused = took, name
				}
			}
		}
	}
	t.Logf("accepted: at most %v (%s); refused: at most %v (%s)", slowest, worst, slowestRefused, worstRefused)
}

// constructs returns the scripts of the sweep. Only the long run has time for all of them.
func constructs(n int) map[string]string {
	bodies := repeated(n)
	maps.Copy(bodies, numbered(n))
	maps.Copy(bodies, repeatedMistakes(n))
	if long() {
		maps.Copy(bodies, repeatedCode(n))
		maps.Copy(bodies, repeatedTypes(n))
		maps.Copy(bodies, numberedCode(n))
	}
	return bodies
}

// compileTime returns the CPU time for a script, and the summary of its first error. The time is
// the minimum of three, unless the first is good enough.
func compileTime(src source.Source) (least time.Duration, refusal string) {
	enough := compileBudget / 4
	if long() {
		enough = refuseBudget / 2
	}
	for range 3 {
		began := osproc.CPUTime()
		p, list := Compile(src)
		took := osproc.CPUTime() - began
		if least == 0 || took < least {
			least = took
		}
		if p == nil {
			refusal = list[slices.IndexFunc(list, func(d diag.Diagnostic) bool { return d.Severity == diag.Error })].Summary
		}
		if least < enough {
			break
		}
	}
	return least, refusal
}

func budgetOf(refusal string) time.Duration {
	if refusal == "" || strings.HasSuffix(refusal, " is not defined") { // the whole script was parsed
		return acceptBudget
	}
	return refuseBudget
}

// TestSweep_combinations repeats and nests random pieces. This found the exponential cases of both
// parsers.
func TestSweep_combinations(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	rounds := 500
	switch {
	case long():
		rounds = 3000
	case testing.Short() || cputest.Race():
		rounds = 100
	}
	for range rounds {
		body := combination(random)
		for _, language := range []source.Language{source.JS, source.TS} {
			src := tool(body)
			src.Language = language
			began := osproc.CPUTime()
			Compile(src)
			if took := osproc.CPUTime() - began; took > compileBudget*slowdown() {
				t.Errorf("%.200q took %v of CPU time", body, took)
			}
		}
	}
}

// combination returns a script with one random piece repeated many times, with brackets that mostly
// match.
func combination(random *rand.Rand) string {
	pick := func(n int) string {
		var b strings.Builder
		for range n {
			pieces := pieces()
			b.WriteString(pieces[random.IntN(len(pieces))])
		}
		return b.String()
	}
	before, piece, inner := pick(random.IntN(4)), pick(1+random.IntN(5)), pick(random.IntN(3))
	after := mirrored(piece)
	if random.IntN(3) == 0 {
		after += pick(1)
	}
	times := []int{8, 20, 25, 40, 60, 120, 500, 3000}[random.IntN(8)]
	body := before + strings.Repeat(piece, times) + inner + strings.Repeat(after, times)
	if random.IntN(4) == 0 {
		part := before + strings.Repeat(piece, 30) + inner + strings.Repeat(after, 30)
		body = strings.Repeat(part+[]string{";", "\n", ","}[random.IntN(3)], times)
	}
	return body[:min(len(body), source.MaxScript)]
}

// mirrored returns the closing brackets for the open ones in s.
func mirrored(s string) (closers string) {
	for i := len(s) - 1; i >= 0; i-- {
		switch c := s[i]; c {
		case '(', '[', '{':
			closers += map[rune]string{'(': ")", '[': "]", '{': "}"}[rune(c)]
		case ')', ']', '}':
			closers = closers[:max(0, len(closers)-1)]
		}
	}
	return closers
}

func pieces() []string {
	return strings.Split("(|)|[|]|{|}|a|b |1|=>|=|?|:|,|;|<|>|`|${|function |function*|async |await |yield |class |extends |new |if(a)|else |for("+
		"|of |in |let |const |var |return |try{|}catch{|}finally{|switch(a){|case |default:|...|!|-|+|*|/|&&|??|?.|.|typeof |as |is |keyof "+
		"|infer |type x=|interface |enum |namespace |abstract |declare |import |export |@|#a|super|this|'s'|/r/|\n|static |get |set |&|satisfies "+
		"|asserts |unique |readonly |public |using |0n|label:|break |throw |do |while(a)|with(a)|delete |void |=>{|({|})|([|])|<T>|(a)|(a:b)|:c|?(a)|=>a", "|")
}
