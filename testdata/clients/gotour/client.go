package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
)

// client is one library, connected to the server of the tour.
type client interface {
	revision() string
	tools(context.Context) ([]string, error)
	resources(context.Context) ([]string, error)
	templates(context.Context) ([]string, error)
	prompts(context.Context) ([]string, error)
	call(ctx context.Context, tool string, arguments map[string]any) (*result, error)
	read(ctx context.Context, uri string) (string, error)
	prompt(ctx context.Context, name string, arguments map[string]string) (string, error)

	// completePrompt and completeTemplate return completions of the value of an
	// argument or a variable.
	completePrompt(ctx context.Context, name, argument, value string) ([]string, error)
	completeTemplate(ctx context.Context, template, variable, value string) ([]string, error)

	wantLogs(context.Context) error
	subscribe(ctx context.Context, uri string) error
	unsubscribe(ctx context.Context, uri string) error

	// lacks returns why the library does not support a step of the tour; empty if
	// it does.
	lacks(step string) string
	close() error
}

// result is the result of a tool call.
type result struct {
	text       string
	structured any
	code       string // error code; empty for a success
}

// endpoint describes how to connect to a server.
type endpoint struct {
	transport string   // "http", "sse" or "stdio"
	revision  string   // protocol revision to use
	home      string   // working directory
	target    []string // the URL, or the command of a stdio server
}

// command runs the server in a shell, which appends its output to the log and
// writes its exit status to a file.
func (e endpoint) command() *exec.Cmd {
	return exec.Command("sh", append([]string{"-c", `"$@" 2>>"$0/log"; echo $? >"$0/status"`, e.home}, e.target...)...)
}

// exitStatus returns the exit status that the shell wrote.
func (e endpoint) exitStatus() (string, error) {
	status, err := os.ReadFile(filepath.Join(e.home, "status"))
	return string(status), err
}

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
