package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/internal/ops/control"
	"github.com/mcpd/mcpd/serve"
)

// refuse tells a client on stdio why there is no server for it: otherwise its user would
// read no more than that the connection was closed. The operator reads it first: left is
// what of err was not said yet. It returns what is left to say afterwards.
func (f *serveFlags) refuse(e env, err, left error) error {
	if err == nil || !f.stdio || f.began || e.typed {
		return left
	}
	code := exitUsage
	var exit *exitError
	if errors.As(err, &exit) {
		code = exit.code
	}
	if left.Error() != "" {
		fmt.Fprintf(e.stderr, "mcpd: %s\n", printable(left.Error()))
	}
	why := printable(f.reason(err) + f.holder(e, err))
	if err := serve.RefuseStdio(context.Background(), e.stdin, e.stdout, why); err != nil && !f.log.forMachines() {
		fmt.Fprintf(e.stderr, "mcpd: %s\n", printable(err.Error()))
	}
	return &exitError{code: code}
}

// reason says why the server could not start, for a person who sees nothing but that.
func (f *serveFlags) reason(err error) string {
	first := slices.IndexFunc(f.problems, func(p diag.Diagnostic) bool { return p.Severity == diag.Error })
	if first < 0 {
		return "mcpd could not start: " + err.Error()
	}
	why := "mcpd could not start: " + f.problems[first].String()
	more := 0
	for _, p := range f.problems[first+1:] {
		if p.Severity == diag.Error {
			more++
		}
	}
	if more > 0 {
		why += fmt.Sprintf("\nmcpd check --tools %s --config %s tells %d more.", f.files.tools, f.files.config, more)
	}
	return why
}

// holderPatience is how long a server that runs may take to say where it listens.
const holderPatience = 2 * time.Second

// holder says which server has the files that this one wants, and what to do, where another
// process is the reason.
func (f *serveFlags) holder(e env, err error) string {
	var advice string
	switch {
	case errors.Is(err, engine.ErrAuditInUse):
		advice = "start this one with another --config, whose audit block has a path of its own"
	case errors.Is(err, engine.ErrStateInUse):
		advice = "start this one with --state memory"
	default:
		return ""
	}
	path := f.control.path(e, &f.files)
	var row statusRow
	if path != "" {
		if _, err := reach(context.Background(), path, control.Request{Do: control.Status}, holderPatience, &row); err != nil {
			path = ""
		}
	}
	if path == "" {
		return "\nStop the other process, or " + advice + "."
	}
	said := fmt.Sprintf("\nA server of these files runs as process %d, with the control socket %s", row.PID, path)
	at := slices.DeleteFunc(row.Listeners, func(where string) bool { return !strings.Contains(where, "://") })
	if len(at) == 0 {
		return said + ". Stop it, or " + advice + "."
	}
	return fmt.Sprintf("%s. Connect the client to %s, or %s.", said, strings.Join(at, " or "), advice)
}
