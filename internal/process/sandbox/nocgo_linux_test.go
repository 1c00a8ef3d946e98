//go:build !cgo

package sandbox

// hasCgo reports whether the program has a C library.
const hasCgo = false
