package schema

import (
	"slices"
)

// Violation is one way in which a value breaks its schema.
type Violation struct {
	// Path is a JSON pointer (RFC 6901) to the part of the value that is
	// wrong, or that is missing; "" is the whole.
	Path string `json:"path"`
	// Message says what is expected there, such as "must be at least 1". It
	// names limits, patterns and choices of the schema and unknown members, cut
	// short, but never repeats a value.
	Message string `json:"message"`
}

// mostViolations bounds how many violations are returned.
const mostViolations = 50

// violations returns the faults, each once, in order.
func violations(faults []fault) []Violation {
	slices.SortStableFunc(faults, compareFaults)
	var list []Violation
	for _, f := range faults {
		v := Violation{Path: f.path, Message: f.message}
		if n := len(list); n > 0 && list[n-1] == v {
			continue
		}
		if list = append(list, v); len(list) == mostViolations {
			break
		}
	}
	return list
}
