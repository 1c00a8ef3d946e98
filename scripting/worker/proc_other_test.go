//go:build !linux

package worker

import "testing"

// offersSeccomp is for Linux only.
func offersSeccomp(*testing.T) bool { return false }
