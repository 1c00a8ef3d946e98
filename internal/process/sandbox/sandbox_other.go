//go:build !linux && !darwin

package sandbox

import (
	"errors"
	"runtime"
	"time"
)

func enter(Options) (Report, error) {
	var report Report
	for _, name := range []string{nameRlimits, nameMemory, nameDescriptors, nameNoNewPrivs, nameUndumpable, nameSeccomp, nameLandlock} {
		report = append(report, without(name, "there is none for "+runtime.GOOS))
	}
	return report, nil
}

// Spent is not known on this system.
func Spent(int) (time.Duration, error) { return 0, errors.ErrUnsupported }

// Allow cannot be done on this system.
func Allow(int, time.Duration) error { return errors.ErrUnsupported }
