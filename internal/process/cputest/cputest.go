// Package cputest lets tests check processor times on machines of varying
// speed, and reports how the test binary was built.
package cputest

import (
	"go/parser"
	"go/token"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/mcpd/mcpd/internal/process/osproc"
)

// referenceTime is the time for parsing sampleSource on the reference machine
// of the budgets, an idle virtual machine with two processors.
const referenceTime = 3 * time.Millisecond

var sampleSource = sync.OnceValue(func() string {
	return "package p\n\nfunc f() {\n" + strings.Repeat("\ta = b + f(1, \"x\")\n", 64<<10/19) + "}\n"
})

// Slowdown returns how many times slower than the reference the machine is now,
// at least 1. It measures the Go parser on 64 KiB, which allocates as other
// parsers and compilers do.
func Slowdown() float64 {
	source := sampleSource()
	start := osproc.CPUTime()
	if _, err := parser.ParseFile(token.NewFileSet(), "p.go", source, 0); err != nil {
		panic(err) // sampleSource is invalid
	}
	return max(1, float64(osproc.CPUTime()-start)/float64(referenceTime))
}

// Within reports whether one of several runs of turn stays within a processor
// time budget, scaled by the slowdown before and after. A run within the
// unscaled budget needs no measurement.
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

// Race reports whether the test binary has the race detector. With it, code is
// slower, uses more memory, and allocates where it otherwise does not.
func Race() bool { return buildSettings()["-race"] == "true" }

// Cgo reports whether the test binary was built with cgo.
func Cgo() bool { return buildSettings()["CGO_ENABLED"] == "1" }

var buildSettings = sync.OnceValue(func() map[string]string {
	settings := map[string]string{}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			settings[s.Key] = s.Value
		}
	}
	if settings["CGO_ENABLED"] == "" {
		panic("the binary has no build settings")
	}
	return settings
})
