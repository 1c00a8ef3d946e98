//go:build !race

package bench

// raced reports whether the race detector, which changes memory use, is on.
const raced = false
