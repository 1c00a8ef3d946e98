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
		report = append(report, missing(name, "there is none for "+runtime.GOOS))
	}
	return report, nil
}

// CPUTime is not supported on this system.
func CPUTime(int) (time.Duration, error) { return 0, errors.ErrUnsupported }

// SetCPULimit is not supported on this system.
func SetCPULimit(int, time.Duration) error { return errors.ErrUnsupported }
