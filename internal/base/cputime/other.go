//go:build !unix

package cputime

import "time"

var began = time.Now()

// Used returns the age of the process, which its processor time is near to
// while it works.
func Used() time.Duration { return time.Since(began) }
