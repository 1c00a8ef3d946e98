//go:build !cgo

package main

// withCgo reports whether this binary is built with cgo. Releases are not.
const withCgo = false
