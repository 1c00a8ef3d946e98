package sandbox

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
