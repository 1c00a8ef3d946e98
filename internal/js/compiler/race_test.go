//go:build race

package compiler

// slowdown is the factor by which work may take longer.
const slowdown = 20

// raceDetector reports whether allocations differ from the usual ones.
const raceDetector = true
