package schema

import (
	"fmt"
	"strings"
)

// nearest returns the faults to tell about a value, at the given place, that
// fits none of several alternatives: those of the alternative that the value
// was surely meant to be, if there is one, and otherwise one fault that sums
// them all up.
func nearest(at string, branches [][]fault) []fault {
	var near [][]fault
	var want, got types
	onlyTypes := true
	for _, faults := range branches {
		f := farthest(at, faults)
		switch {
		case f == nil:
			near = append(near, faults)
			onlyTypes = false
		case f.want != 0 && f.path == at:
			want |= f.want
			got = f.got
		default:
			onlyTypes = false
		}
	}
	switch {
	case len(near) == 1 && len(near[0]) > 0:
		return near[0]
	case onlyTypes && want != 0:
		return []fault{{path: at, message: want.mustBe(got), want: want, got: got}}
	}
	return []fault{{path: at, message: sumUp(at, branches)}}
}

// farthest returns the fault that shows that the value was not meant to be the
// alternative that it belongs to: its type is another, or what tells the
// alternatives apart, the value itself or one of its members, is another. It
// returns nil when there is none.
func farthest(at string, faults []fault) *fault {
	for i := range faults {
		f := &faults[i]
		if f.path == at && (f.want != 0 || f.choice) {
			return f
		}
		inner, below := strings.CutPrefix(f.path, at+"/")
		if below && f.choice && !strings.Contains(inner, "/") {
			return f
		}
	}
	return nil
}

// mostBranches is how many alternatives a message sums up, and
// longestAlternative how many bytes it says of each.
const (
	mostBranches       = 5
	longestAlternative = 200
)

// sumUp says in one message what keeps a value from being each alternative.
func sumUp(at string, branches [][]fault) string {
	var told []string
	for _, faults := range branches[:min(len(branches), mostBranches)] {
		for _, f := range faults[:min(len(faults), 1)] {
			words := f.message
			if inner := strings.TrimPrefix(f.path, at); inner != "" {
				words = inner + " " + words
			}
			words = clip(words, longestAlternative)
			if last := len(told) - 1; last < 0 || told[last] != words {
				told = append(told, words)
			}
		}
	}
	message := fmt.Sprintf("fits none of the %d alternatives that the schema offers", len(branches))
	if len(told) == 0 {
		return message
	}
	message += ": " + strings.Join(told, "; or ")
	if len(branches) > mostBranches {
		message += "; and so on"
	}
	return message
}
