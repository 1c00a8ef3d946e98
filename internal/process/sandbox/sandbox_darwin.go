package sandbox

import (
	"errors"
	"time"
)

// enter does what limits can. That of data does not hold for memory that is
// mapped, which is all of it, so there is none.
func enter(Options) (Report, error) {
	open := with(nameDescriptors, descriptors())
	if err := rlimits(0); err != nil {
		return nil, err
	}
	report := Report{with(nameRlimits, nil), open}
	for _, name := range []string{nameMemory, nameNoNewPrivs, nameUndumpable, nameSeccomp, nameLandlock} {
		report = append(report, without(name, "this system has none"))
	}
	return report, nil
}

// Spent is not known on this system.
func Spent(int) (time.Duration, error) { return 0, errors.ErrUnsupported }

// Allow cannot be done on this system.
func Allow(int, time.Duration) error { return errors.ErrUnsupported }
