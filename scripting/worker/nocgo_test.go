//go:build !cgo

package worker

// inC tells whether a C library is part of the program.
const inC = false
