//go:build !race

package scripting

// slowdown is how much longer work may take.
const slowdown = 1

// raceDetector says that allocations are not what they are otherwise.
const raceDetector = false
