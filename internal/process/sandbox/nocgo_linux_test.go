//go:build !cgo

package sandbox

// inC tells whether a C library is part of the program.
const inC = false
