//go:build !race

package bench

// raced says that memory is not what it is without the race detector.
const raced = false
