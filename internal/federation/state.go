package federation

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mcpd/mcpd/internal/execution/catalog"
)

// State is how an upstream server is, for operators.
type State struct {
	// Name is that of its block.
	Name string
	// Up says that it can be reached and has told what it offers.
	Up bool
	// Err is why it cannot be reached, nil where it can or where that is not known yet.
	Err error
	// Idle says that it is reached when it is called first, which nobody has done yet.
	Idle bool
	// Late is why what serves began without it, nil once it has told what it offers or cannot
	// be reached.
	Late error
	// Since is when this began to be so, and Again when it is tried again; zero where there
	// is no such time.
	Since, Again time.Time
	// Revision is that of the protocol that it speaks, "" where none is agreed on.
	Revision string
	// Instructions tell a model how to use it, in its own words.
	Instructions string
	// Offered counts what it lists, and Left what of that could be offered here and is not.
	// LeftOut are the first of these, with the reasons. Quarantined are the tools among all
	// of these that nobody has accepted as they are.
	Offered, Left        int
	LeftOut, Quarantined []string
	// Unruled counts what is left out as a rule that covers it does not fit it, and Taken
	// what is as something else has its name.
	Unruled, Taken int
	// Unkept is why the lock file does not have what is taken in of it without a question,
	// nil where it does.
	Unkept error
}

// Ailing says in a few words what is wrong with servers, "" for nothing.
func Ailing(states []State) string {
	var down, quarantined, unruled, taken, ails []string
	for _, s := range states {
		if !s.Up && !s.Idle {
			down = append(down, s.Name)
		}
		if n := len(s.Quarantined); n > 0 {
			quarantined = append(quarantined, fmt.Sprintf("%d of %s", n, s.Name))
		}
		if s.Unruled > 0 {
			unruled = append(unruled, fmt.Sprintf("%d of %s", s.Unruled, s.Name))
		}
		if s.Taken > 0 {
			taken = append(taken, fmt.Sprintf("%d of %s", s.Taken, s.Name))
		}
	}
	if down != nil {
		ails = append(ails, "not reached: "+strings.Join(down, ", "))
	}
	if quarantined != nil {
		ails = append(ails, "tools in quarantine: "+strings.Join(quarantined, ", "))
	}
	if unruled != nil {
		ails = append(ails, "left out as rules do not fit: "+strings.Join(unruled, ", "))
	}
	if taken != nil {
		ails = append(ails, "left out as names are taken: "+strings.Join(taken, ", "))
	}
	return strings.Join(ails, "; ")
}

// maxLeft bounds [State].LeftOut.
const maxLeft = 100

// maxReason bounds what is shown of why a server cannot be reached, which may be in words
// of its own, in bytes.
const maxReason = 1 << 10

// shown returns an error as operators may see it.
func (f *Federation) shown(err error) error {
	if err == nil {
		return nil
	}
	return errors.New(clippedTo(f.veil.Redact(err.Error()), maxReason))
}

// States returns how the servers of a catalog are, in the order of their blocks.
func (f *Federation) States(c *catalog.Catalog) []State {
	f.mu.Lock()
	defer f.mu.Unlock()
	states := make([]State, len(c.Upstreams))
	for i := range c.Upstreams {
		name := c.Upstreams[i].Name
		s := f.fleet.State(name)
		states[i] = State{Name: name, Idle: s.Idle, Err: f.shown(s.Err), Since: s.Since, Again: s.Again, Revision: s.Revision}
		if l := s.Listing; l != nil {
			states[i].Up, states[i].Instructions = true, f.veil.Redact(l.Instructions)
			states[i].Offered = len(l.Tools) + len(l.Resources) + len(l.Templates) + len(l.Prompts)
		}
		if s.Listing == nil && s.Err == nil && slices.Contains(f.late, name) {
			states[i].Late = errLate
		}
		if knows(f.pins.kept, name) {
			states[i].Unkept = f.pins.unkept
		}
		for _, left := range c.LeftOut {
			if left.Upstream != name {
				continue
			}
			if left.Quarantined {
				states[i].Quarantined = append(states[i].Quarantined, left.Address)
			}
			if left.Unruled {
				states[i].Unruled++
			}
			if left.Taken {
				states[i].Taken++
			}
			if states[i].Left++; states[i].Left <= maxLeft {
				states[i].LeftOut = append(states[i].LeftOut, fmt.Sprintf("%s %s: %s", left.Kind, left.Address, left.Why))
			}
		}
	}
	return states
}
