//go:build !race

package worker

// heavier is how many times as much memory a process takes.
const heavier = 1
