package hclfile

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/mcpd/mcpd/internal/base/cputime"
	"github.com/mcpd/mcpd/internal/base/cputime/cputest"
)

// chains are locals of which each grows out of the one before.
var chains = map[string]struct{ first, next string }{
	"text":        {`"x"`, `"${local.l%[1]d}${local.l%[1]d}"`},
	"wide text":   {`"é"`, `"${local.l%[1]d}${local.l%[1]d}"`},
	"marks":       {`"e\u0301\u0301"`, `"${local.l%[1]d}${local.l%[1]d}"`},
	"lists":       {`["x"]`, `[local.l%[1]d, local.l%[1]d]`},
	"objects":     {`{ a = "x" }`, `{ a = local.l%[1]d, b = local.l%[1]d }`},
	"concat":      {`[1]`, `concat(local.l%[1]d, local.l%[1]d)`},
	"sums":        {`[1]`, `concat(local.l%[1]d, [for x in local.l%[1]d : x + 1])`},
	"made":        {`[1]`, `concat(local.l%[1]d, [for x in local.l%[1]d : { a = x }])`},
	"distinct":    {`[1]`, `concat(local.l%[1]d, [for i, x in local.l%[1]d : i + length(local.l%[1]d)], distinct(local.l%[1]d))`},
	"sort":        {`["x"]`, `concat(local.l%[1]d, [for i, x in sort(local.l%[1]d) : "${x}${i}"])`},
	"merge":       {`{ a = 1 }`, `merge(local.l%[1]d, { for k, v in local.l%[1]d : "${k}x" => v })`},
	"equality":    {`["x"]`, `concat(local.l%[1]d, local.l%[1]d, local.l%[1]d == local.l%[1]d ? [] : [])`},
	"json":        {`"[1]"`, `jsonencode([jsondecode(local.l%[1]d), jsondecode(local.l%[1]d)])`},
	"wide json":   {`"[1]"`, `jsonencode(concat(jsondecode(local.l%[1]d), jsondecode(local.l%[1]d)))`},
	"chunks":      {`["x"]`, `flatten(chunklist(concat(local.l%[1]d, local.l%[1]d), 1))`},
	"characters":  {`"x"`, `"${local.l%[1]d}${local.l%[1]d}${substr(local.l%[1]d, -1, 1)}"`},
	"directives":  {`"x"`, `"%%{for i in [1, 2]}${local.l%[1]d}%%{endfor}"`},
	"split":       {`"x,"`, `join(",", concat(split(",", local.l%[1]d), split(",", local.l%[1]d)))`},
	"values":      {`{ a = "x" }`, `{ for i, v in concat(values(local.l%[1]d), values(local.l%[1]d)) : "k${i}" => v }`},
	"every index": {`[1]`, `concat(local.l%[1]d, [for i, x in local.l%[1]d : local.l%[1]d[i]])`},
}

func chain(first, next string, n int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "locals {\n  l0 = %s\n", first)
	for i := range n {
		fmt.Fprintf(&b, "  l%d = "+next+"\n", i+1, i)
	}
	return b.String() + "}\n"
}

// TestNoFileCostsMoreThanItsShare measures the time of the processor, which
// takes a machine that does little else.
func TestNoFileCostsMoreThanItsShare(t *testing.T) {
	if os.Getenv("MCPD_LONG") == "" {
		t.Skip("set MCPD_LONG")
	}
	for name, bomb := range bombs {
		for n := 10; n <= 1_000_000; n *= 10 {
			checkCost(t, fmt.Sprintf("%s × %d", name, n), Source{Path: "x.hcl", Bytes: []byte("locals {\n" + bomb(n) + "\n}\n")})
			broken := Source{Path: "x.hcl", Bytes: []byte(bomb(n) + "\n? \n")}
			checkCostWithin(t, refusal+time.Duration(len(broken.Bytes)>>10)*perKiB, fmt.Sprintf("%s × %d and a mistake", name, n), broken)
		}
	}
	for name, bomb := range jsonBombs {
		for n := 10; n <= 1_000_000; n *= 10 {
			checkCost(t, fmt.Sprintf("JSON %s × %d", name, n), Source{Path: "x.hcl.json", Bytes: []byte(bomb(n))})
		}
	}
	for name, c := range chains {
		for n := 1; n <= 400; n += 1 + n/4 {
			checkCost(t, fmt.Sprintf("chained %s × %d", name, n), Source{Path: "x.hcl", Bytes: []byte(chain(c.first, c.next, n))})
		}
	}
}

const (
	// refusal is what refusing a file may cost.
	refusal = 20 * time.Millisecond
	// perKiB is what parsing many definitions may cost beside that, to tell all
	// mistakes of a file of many definitions.
	perKiB = 500 * time.Microsecond
)

// checkCost fails when a file that is refused takes more than 20 ms, or one
// that is accepted more than 250 ms, the best of four times and on a machine as [cputest] knows it.
func checkCost(t *testing.T, name string, src Source) {
	t.Helper()
	checkCostWithin(t, refusal, name, src)
}

// problemTime returns the processor time that the problems of a file take.
func problemTime(src Source) time.Duration {
	runtime.GC()
	before := cputime.Used()
	toolProblems(src)
	return cputime.Used() - before
}

func checkCostWithin(t *testing.T, refusal time.Duration, name string, src Source) {
	t.Helper()
	best, refused := time.Hour, toolProblems(src).HasErrors()
	for range 4 {
		best = min(best, problemTime(src))
	}
	budget := 250 * time.Millisecond
	if refused {
		budget = refusal
	}
	if best > budget && !cputest.Within(budget, func() time.Duration { return problemTime(src) }) {
		t.Errorf("%s took %v, refused: %t", name, best, refused)
	}
}
