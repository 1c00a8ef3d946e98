package federation

import (
	"fmt"
	"strings"
	"time"

	"github.com/mcpd/mcpd/internal/federation/lockfile"
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

// Drift is how the tools of an upstream differ from what was accepted of them.
type Drift struct {
	// Upstream is the name of its block.
	Upstream string
	// Err says why it is not known; the other members are empty then.
	Err error
	// New says that the lock file does not know the upstream.
	New bool
	// Changes are the differences to the lock file, sorted by name. Whatever the block says
	// of first use, what the file does not have is one. What the file has and the block does
	// not include is none: the server has not changed it.
	Changes []lockfile.Change
	// Tools are the names of all that was compared, whether it differs or not.
	Tools []string
	// Refused says of what nobody can accept why.
	Refused []string
}
