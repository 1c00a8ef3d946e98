//go:build race

package worker

// raceEnabled reports whether the race detector uses most of the memory.
const raceEnabled = true
