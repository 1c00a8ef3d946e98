package sandbox

import (
	"errors"
	"time"
)

// enter sets resource limits. The data limit does not apply to mapped memory,
// which is all memory of a Go program, so it is not set.
func enter(Options) (Report, error) {
	open := facility(nameDescriptors, closeInherited())
	if err := setRlimits(0); err != nil {
		return nil, err
	}
	report := Report{facility(nameRlimits, nil), open}
	for _, name := range []string{nameMemory, nameNoNewPrivs, nameUndumpable, nameSeccomp, nameLandlock} {
		report = append(report, missing(name, "this system has none"))
	}
	return report, nil
}

// CPUTime is not supported on this system.
func CPUTime(int) (time.Duration, error) { return 0, errors.ErrUnsupported }

// SetCPULimit is not supported on this system.
func SetCPULimit(int, time.Duration) error { return errors.ErrUnsupported }
