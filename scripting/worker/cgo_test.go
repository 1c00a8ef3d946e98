//go:build cgo

package worker

// inC reports whether the program links a C library.
const inC = true
