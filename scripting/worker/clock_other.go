//go:build !unix

package worker

import "time"

// began is when the process began, or nearly.
var began = time.Now()

// spent returns the age of this process, which its processor time is close to
// while it works.
func spent() time.Duration { return time.Since(began) }
