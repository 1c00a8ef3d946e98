//go:build race

package worker

// heavier is how many times as much memory a process takes with the detector of
// races.
const heavier = 8
