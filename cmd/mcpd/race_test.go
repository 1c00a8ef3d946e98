//go:build race

package main

// slower is the slowdown factor of the race detector.
const slower = 5
