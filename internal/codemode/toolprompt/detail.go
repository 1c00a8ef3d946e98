package toolprompt

// Detail is how much declarations tell. Each tells what the one before does but for
// one thing, which is left out of all tools alike.
type Detail int

const (
	// Full tells everything.
	Full Detail = iota
	// WithoutConstraints leaves out what values are held to beyond their types.
	WithoutConstraints
	// WithoutMembers leaves out the descriptions of members.
	WithoutMembers
	// WithoutResults leaves out the types of results.
	WithoutResults
	// FirstSentences leaves out all but the first sentences of descriptions.
	FirstSentences
	// WithoutArguments leaves out the types of arguments.
	WithoutArguments
	// NamesOnly leaves out all but names.
	NamesOnly
)

// leftOut names, for each detail between [Full] and [NamesOnly], what it leaves out.
var leftOut = [...]string{
	WithoutConstraints: "the constraints of values",
	WithoutMembers:     "the descriptions of members",
	WithoutResults:     "the types of results",
	FirstSentences:     "all but the first sentences of descriptions",
	WithoutArguments:   "the types of arguments",
}

// LeftOut names what declarations of the detail leave out, in the order in which it
// is given up; nothing for [Full].
func (d Detail) LeftOut() []string {
	switch {
	case d <= Full:
		return nil
	case d >= NamesOnly:
		return []string{"everything but the names"}
	}
	return append([]string(nil), leftOut[WithoutConstraints:d+1]...)
}
