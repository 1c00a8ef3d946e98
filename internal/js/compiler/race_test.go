//go:build race

package compiler

// slowdown is how much longer work may take.
const slowdown = 20

// raceDetector says that allocations are not what they are otherwise.
const raceDetector = true
