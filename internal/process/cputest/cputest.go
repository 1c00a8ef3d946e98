// Package cputest has tests judge processor times on machines that are not always
// as fast as before.
package cputest

import (
	"go/parser"
	"go/token"
	"strings"
	"sync"
	"time"

	"github.com/mcpd/mcpd/internal/process/osproc"
)

// standard is what the yardstick takes on the machine that budgets are made for, a
// virtual one with two processors that does nothing else.
const referenceTime = 3 * time.Millisecond

var sampleSource = sync.OnceValue(func() string {
	return "package p\n\nfunc f() {\n" + strings.Repeat("\ta = b + f(1, \"x\")\n", 64<<10/19) + "}\n"
})

// Slower returns how many times slower than that the machine is now, and at least 1:
// the yardstick is the parser of Go on 64 KiB, which makes as many small objects as
// other parsers and compilers do.
func Slowdown() float64 {
	source := sampleSource()
	began := osproc.CPUTime()
	if _, err := parser.ParseFile(token.NewFileSet(), "p.go", source, 0); err != nil {
		panic(err) // the yardstick itself is wrong
	}
	return max(1, float64(osproc.CPUTime()-began)/float64(referenceTime))
}

// Within reports whether one of several turns of something that takes processor time
// keeps to a budget, beside what the machine takes for the yardstick before and after.
// A turn that keeps to it on any machine needs no yardstick.
func Within(budget time.Duration, turn func() time.Duration) bool {
	if turn() <= budget {
		return true
	}
	for range 8 {
		before := Slowdown()
		took := turn()
		if took <= time.Duration(float64(budget)*max(before, Slowdown())) {
			return true
		}
	}
	return false
}
