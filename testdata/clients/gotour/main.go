// The tour of the Go clients tests every client of docs/reference/clients.md
// against a real mcpd that serves tour.d. .ci/clients runs it:
//
//	gotour EDITS go-sdk|mcp-go TRANSPORT REVISION HOME URL
//	gotour EDITS go-sdk|mcp-go stdio REVISION HOME COMMAND...
//
// EDITS is the directory of files to install during the tour. HOME contains
// tools, the served directory, and log, the log of mcpd. The standard output is
// the client's row of the table. TOUR_ASKS names the upstream server of the
// tools, if mcpd itself has no tools: elicitations are labeled with it.
// TOUR_BESIDE are prefixes of all other names and URIs that mcpd offers; each
// must occur.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"time"
)

// stateless is the first revision without sessions.
const stateless = "2026-07-28"

// patience is the timeout of one step, for a busy machine.
const patience = time.Minute

// library is one of the selectable clients.
type library struct {
	title  string
	module string
	dial   func(context.Context, endpoint, *inbox) (client, error)
}

var libraries = map[string]library{
	"go-sdk": {"Go SDK", "github.com/modelcontextprotocol/go-sdk", dialGoSDK},
	"mcp-go": {"mcp-go", "github.com/mark3labs/mcp-go", dialMCPGo},
}

func main() {
	if len(os.Args) < 7 {
		fmt.Fprintln(os.Stderr, "usage: gotour EDITS go-sdk|mcp-go TRANSPORT REVISION HOME URL|COMMAND...")
		os.Exit(2)
	}
	at := endpoint{transport: os.Args[3], revision: os.Args[4], home: os.Args[5], target: os.Args[6:]}
	row, err := run(libraries[os.Args[2]], at, os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(row)
}

// run runs the steps and returns the client's row of the table.
func run(lib library, at endpoint, edits string) (row string, err error) {
	cells := []string{lib.title + " " + lib.version(), at.transport, at.revision}
	who := strings.Join(cells, ", ")
	in := newInbox()
	// Connections live as long as the context of their creation.
	c, err := lib.dial(context.Background(), at, in)
	if err != nil {
		return "", fmt.Errorf("%s: connect: %w", who, err)
	}
	t := &tour{client: c, inbox: in, at: at, edits: edits}
	for _, step := range steps {
		cell := "yes"
		if why := c.lacks(step.name); why != "" {
			fmt.Fprintf(os.Stderr, "%s: %s is NOT OFFERED BY THIS CLIENT: %s\n", who, step.name, why)
			cell, step.do = "not offered", step.instead
		}
		if step.do != nil {
			err = within(func(ctx context.Context) error { return step.do(t, ctx) })
		}
		if err != nil {
			return "", errors.Join(fmt.Errorf("%s: %s FAILED", who, step.name), err)
		}
		cells = append(cells, cell)
	}
	if err := within(t.leave); err != nil {
		return "", fmt.Errorf("%s: leave: %w", who, err)
	}
	fmt.Fprintln(os.Stderr, who+": ok")
	return "| " + strings.Join(cells, " | ") + " |", nil
}

// within runs a step with the timeout.
func within(do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return do(ctx)
}

// leave closes the connection, which cancels abandoned calls, and ends a stdio
// server: by itself, with status 0, when its input ends.
func (t *tour) leave(ctx context.Context) error {
	if err := errors.Join(t.close(), t.said(ctx, scriptStopped)); err != nil {
		return err
	}
	if t.at.transport != "stdio" {
		return nil
	}
	status, err := t.at.exitStatus()
	return errors.Join(err, equal("exit status of mcpd", status, "0\n"))
}

// version returns the version of the library in this program.
func (l library) version() string {
	info, _ := debug.ReadBuildInfo()
	for _, module := range info.Deps {
		if module.Path == l.module {
			return strings.TrimPrefix(module.Version, "v")
		}
	}
	return "?"
}

// errorCode reads mcpd's error code from the _meta of a result.
func errorCode(meta any) string {
	failure, _ := meta.(map[string]any)
	code, _ := failure["code"].(string)
	return code
}
