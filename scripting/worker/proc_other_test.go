//go:build !linux

package worker

import "testing"

// offersSeccomp is for Linux alone.
func offersSeccomp(*testing.T) bool { return false }
