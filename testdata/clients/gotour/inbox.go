package main

// A question is what a tool asks the user of the client.
type question struct {
	message string
	schema  any
}

// An answer is what the user says to it.
type answer struct {
	action  string
	content map[string]any
}

// An inbox takes what the server sends by itself.
type inbox struct {
	progress  chan string // as "1/3 at 1"
	logs      chan string // levels
	changed   chan string // which list has changed
	updated   chan string // URIs
	questions chan question
	answers   chan answer // to the next questions, in order
}

// newInbox has room for all that the tour provokes: nobody waits for it to be read.
func newInbox() *inbox {
	const room = 1024
	return &inbox{
		progress:  make(chan string, room),
		logs:      make(chan string, room),
		changed:   make(chan string, room),
		updated:   make(chan string, room),
		questions: make(chan question, room),
		answers:   make(chan answer, room),
	}
}

// ask is how the user answers: as the tour has laid out before the call.
func (in *inbox) ask(q question) answer {
	in.questions <- q
	select {
	case a := <-in.answers:
		return a
	default:
		return answer{action: "cancel"}
	}
}
