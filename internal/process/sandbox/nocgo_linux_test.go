//go:build !cgo

package sandbox

// inC reports whether the program has a C library.
const inC = false
