//go:build race

package main

// slower is how many times slower everything is.
const slower = 5
