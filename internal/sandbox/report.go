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
	var on, off []string
	for _, f := range r {
		switch {
		case !f.On:
			off = append(off, "without "+f.Name+": "+f.Detail)
		case f.Detail != "":
			on = append(on, f.Name+" "+f.Detail)
		default:
			on = append(on, f.Name)
		}
	}
	if len(on) == 0 {
		on = []string{"nothing"}
	}
	return strings.Join(append([]string{strings.Join(on, ", ")}, off...), "; ")
}

// without returns a facility that is not on.
func without(name, why string) Facility { return Facility{Name: name, Detail: why} }

// with returns a facility that is on unless err says why it is not.
func with(name string, err error) Facility {
	if err != nil {
		return without(name, reason(err))
	}
	return Facility{Name: name, On: true}
}
