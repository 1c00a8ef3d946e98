//go:build !cgo

package worker

// usesCgo reports whether the program links a C library.
const usesCgo = false
