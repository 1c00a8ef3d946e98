//go:build cgo

package main

// withCgo says that this binary has C in it, as no release has.
const withCgo = true
