//go:build !linux

package sandbox

import (
	"errors"
	"time"
)

// MayAllow tells whether this system lets a process give others processor time.
const MayAllow = false

// Spent is not known on this system.
func Spent(int) (time.Duration, error) { return 0, errors.ErrUnsupported }

// Allow cannot be done on this system.
func Allow(int, time.Duration) error { return errors.ErrUnsupported }
