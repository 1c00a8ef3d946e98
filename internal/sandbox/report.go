package sandbox

import "strings"

// Facility is one means to confine a process.
type Facility struct {
	// Name is as its documentation has it, as in seccomp.
	Name string `json:"name"`
	// On tells whether it confines the process.
	On bool `json:"on"`
	// Detail is the version of one that is on, and of others why they are not.
	Detail string `json:"detail,omitempty"`
}

// Report says what confines a process, and what does not.
type Report []Facility

// Complete reports whether nothing is missing.
func (r Report) Complete() bool {
	for _, f := range r {
		if !f.On {
			return false
		}
	}
	return len(r) > 0
}

// String returns one line, such as "rlimits, seccomp; without landlock: the
// kernel has none".
func (r Report) String() string {
	parts := []string{r.Confining()}
	for _, f := range r {
		if !f.On {
			parts = append(parts, "without "+f.missing())
		}
	}
	return strings.Join(parts, "; ")
}

// Confining names the facilities that confine the process, such as "rlimits,
// landlock 6"; "nothing" if none does.
func (r Report) Confining() string {
	var on []string
	for _, f := range r {
		if f.On {
			on = append(on, strings.TrimSpace(f.Name+" "+f.Detail))
		}
	}
	if len(on) == 0 {
		return "nothing"
	}
	return strings.Join(on, ", ")
}

// Missing names the facilities that do not confine the process, each with the reason,
// such as "landlock: the kernel has none".
func (r Report) Missing() string {
	var off []string
	for _, f := range r {
		if !f.On {
			off = append(off, f.missing())
		}
	}
	return strings.Join(off, "; ")
}

func (f Facility) missing() string { return f.Name + ": " + f.Detail }

// without returns a facility that is not on.
func without(name, why string) Facility { return Facility{Name: name, Detail: why} }

// with returns a facility that is on unless err says why it is not.
func with(name string, err error) Facility {
	if err != nil {
		return without(name, reason(err))
	}
	return Facility{Name: name, On: true}
}
