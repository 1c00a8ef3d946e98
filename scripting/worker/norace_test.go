//go:build !race

package worker

// raced tells whether the detector of races takes most of the memory.
const raced = false
