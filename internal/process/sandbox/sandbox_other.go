//go:build !linux && !darwin

package sandbox

import "runtime"

func enter(Options) (Report, error) {
	var report Report
	for _, name := range []string{nameRlimits, nameMemory, nameDescriptors, nameNoNewPrivs, nameUndumpable, nameSeccomp, nameLandlock} {
		report = append(report, without(name, "there is none for "+runtime.GOOS))
	}
	return report, nil
}
