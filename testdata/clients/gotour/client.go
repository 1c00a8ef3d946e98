package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
)

// A client is one library, connected to the server of the tour.
type client interface {
	revision() string
	tools(context.Context) ([]string, error)
	resources(context.Context) ([]string, error)
	templates(context.Context) ([]string, error)
	prompts(context.Context) ([]string, error)
	call(ctx context.Context, tool string, arguments map[string]any) (*result, error)
	read(ctx context.Context, uri string) (string, error)
	prompt(ctx context.Context, name string, arguments map[string]string) (string, error)

	// completePrompt and completeTemplate return how the value of an argument,
	// or of a variable, may go on.
	completePrompt(ctx context.Context, name, argument, value string) ([]string, error)
	completeTemplate(ctx context.Context, template, variable, value string) ([]string, error)

	wantLogs(context.Context) error
	subscribe(ctx context.Context, uri string) error
	unsubscribe(ctx context.Context, uri string) error

	// lacks says why the library does not offer a step of the tour, or nothing.
	lacks(step string) string
	close() error
}

// A result is what a call of a tool returned.
type result struct {
	text       string
	structured any
	code       string // of the error, or empty
}

// An endpoint is where a server is to be had.
type endpoint struct {
	transport string   // "http", "sse" or "stdio"
	revision  string   // to be spoken there
	home      string   // the folder of the leg
	target    []string // the URL, or the command that serves on stdio
}

// command starts the server below a shell, which appends what it says to the
// log and writes its exit status down.
func (e endpoint) command() *exec.Cmd {
	return exec.Command("sh", append([]string{"-c", `"$@" 2>>"$0/log"; echo $? >"$0/status"`, e.home}, e.target...)...)
}

// exitStatus returns what the shell wrote down.
func (e endpoint) exitStatus() (string, error) {
	status, err := os.ReadFile(filepath.Join(e.home, "status"))
	return string(status), err
}
