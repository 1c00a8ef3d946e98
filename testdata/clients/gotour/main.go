// The tour of the Go clients: what every client of docs/reference/clients.md does against
// a real mcpd that serves tour.d. Run by .ci/clients:
//
//	gotour EDITS go-sdk|mcp-go TRANSPORT REVISION HOME URL
//	gotour EDITS go-sdk|mcp-go stdio REVISION HOME COMMAND...
//
// EDITS is the folder of the files that are put in place underneath. HOME holds
// tools, the folder that is served, and log, what mcpd says of it. What is
// printed on standard output is the client's row of the table. TOUR_ASKS names the
// upstream of which mcpd has the tools, where it has none of its own: it is said to ask.
// TOUR_BESIDE are the words that the names and the URIs of all else begin with that mcpd
// offers there: all of them are to be found.
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

// patience bounds one step of the tour, on a machine that has much to do.
const patience = time.Minute

// A library is one of the clients that can be asked for.
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

// run goes through the steps and returns the client's row of the table.
func run(lib library, at endpoint, edits string) (row string, err error) {
	cells := []string{lib.title + " " + lib.version(), at.transport, at.revision}
	who := strings.Join(cells, ", ")
	in := newInbox()
	// Connections live as long as the context that they are made in.
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

// within gives a step its time.
func within(do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return do(ctx)
}

// leave ends the connection, with it whatever was abandoned, and the server if
// it is ours: by itself, with status 0, as soon as its input ends.
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

// version is the one that the program is built with.
func (l library) version() string {
	info, _ := debug.ReadBuildInfo()
	for _, module := range info.Deps {
		if module.Path == l.module {
			return strings.TrimPrefix(module.Version, "v")
		}
	}
	return "?"
}

// errorCode reads mcpd's code from the _meta of a result.
func errorCode(meta any) string {
	failure, _ := meta.(map[string]any)
	code, _ := failure["code"].(string)
	return code
}
