package schema

const (
	// patience is how many steps a validation may take, beside one for each
	// byte of the text. A step is some 25 ns of work. No value takes as many with
	// a schema that does not multiply the work itself.
	patience = 300_000
	// costOfFault and costOfBranch are the steps that it takes to explain.
	costOfFault  = 40
	costOfBranch = 40
)

// A run holds one value against a schema: first without explaining, which
// ends at the first thing wrong and costs no memory, and only when there is
// one a second time, for the list of all of them.
type run struct {
	// left is how many steps are left.
	left int
	// explain says that every mistake is wanted, with its place.
	explain bool
	path    location
	faults  []fault
	// arguments says that the value is the arguments of a call.
	arguments bool
	// suggested counts the similar names that were looked for.
	suggested int
	// scratch is for spelling values.
	scratch []byte
}

// A fault is a mistake in a value, and what tells one alternative of a schema
// from another.
type fault struct {
	path, message string
	// want are the types that the value should have had, for a mistake in type.
	want types
	// got is the type that it has.
	got types
	// choice says that the value is none of those that are listed.
	choice bool
}

// mostFaults bounds how many faults are collected.
const mostFaults = 200

// step counts n steps, and reports false when there are none left.
func (r *run) step(n int) bool {
	r.left -= n
	return r.left > 0
}

// exhausted reports whether the run ended before it found an answer.
func (r *run) exhausted() bool { return r.left <= 0 }

// enter goes on to a part of the value; leave comes back.
func (r *run) enter(s segment) {
	if r.explain {
		r.path = append(r.path, s)
	}
}

func (r *run) leave() {
	if r.explain {
		r.path = r.path[:len(r.path)-1]
	}
}

// refuse notes a mistake at the present place. It returns false, the outcome
// of the check that found it.
func (r *run) refuse(message func() string) bool {
	if r.explain {
		r.add(fault{message: message()})
	}
	return false
}

func (r *run) add(f fault) {
	if r.step(costOfFault) && !r.full() {
		f.path = r.path.pointer()
		r.faults = append(r.faults, f)
	}
}

// full reports whether enough faults have been collected.
func (r *run) full() bool { return len(r.faults) >= mostFaults }

// quietly runs a check without explaining.
func (r *run) quietly(n *node, v any) bool {
	explain := r.explain
	r.explain = false
	ok := n.check(v, r)
	r.explain = explain
	return ok
}

// apart runs checks and returns their faults rather than collecting them.
func (r *run) apart(checks func()) []fault {
	before := r.faults
	r.faults = nil
	if r.step(costOfBranch) {
		checks()
	}
	found := r.faults
	r.faults = before
	return found
}
