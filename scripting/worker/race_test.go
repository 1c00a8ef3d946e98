//go:build race

package worker

// raced reports whether the race detector uses most of the memory.
const raced = true
