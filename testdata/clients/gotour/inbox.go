package main

// question is an elicitation of a tool.
type question struct {
	message string
	schema  any
}

// answer is the user's answer to a question.
type answer struct {
	action  string
	content map[string]any
}

// inbox receives the notifications and requests of the server.
type inbox struct {
	progress  chan string // as "1/3 at 1"
	logs      chan string // levels
	changed   chan string // which list has changed
	updated   chan string // URIs
	questions chan question
	answers   chan answer // to the next questions, in order
}

// newInbox has capacity for all messages of the tour, so that no sender blocks.
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

// ask returns the user's answer, which the tour has prepared before the call.
func (in *inbox) ask(q question) answer {
	in.questions <- q
	select {
	case a := <-in.answers:
		return a
	default:
		return answer{action: "cancel"}
	}
}
