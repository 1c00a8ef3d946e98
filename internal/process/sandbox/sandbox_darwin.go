package sandbox

import (
	"errors"
	"time"
)

// enter does what limits can. That of data does not hold for memory that is
// mapped, which is all of it, so there is none.
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

// CPUTime is not known on this system.
func CPUTime(int) (time.Duration, error) { return 0, errors.ErrUnsupported }

// SetCPULimit cannot be done on this system.
func SetCPULimit(int, time.Duration) error { return errors.ErrUnsupported }
