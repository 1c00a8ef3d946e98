package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/ops/control"
	"github.com/mcpd/mcpd/serve"
)

// attachPatience is the timeout to connect to the server.
const attachPatience = 10 * time.Second

// attachRow is the response of a server to a client that attaches.
type attachRow struct {
	PID     int    `json:"pid"`
	Version string `json:"version"`
}

func newAttach(e env) *cobra.Command {
	var a controlClientFlags
	cmd := &cobra.Command{
		Use:   "attach",
		Short: "Connect a desktop client to the running server, over stdio",
		Long: `Attach speaks MCP on standard input and output, like mcpd serve --stdio, and connects
the client to the server that already runs for these files. Several clients share that
server, its state and its audit log. They are the local user, as with serve --stdio.

Attach ends when standard input ends and the running calls have ended, for which the
server allows its --grace. If no server runs, it reports that to the client as the
answer to its first requests, and exits with code 1.`,
		Example: `  mcpd attach --config /srv/mcpd/mcpd.hcl --tools /srv/mcpd/tools.d
  mcpd attach --control /run/mcpd/control.sock`,
		Args: noOperand,
		RunE: func(cmd *cobra.Command, _ []string) error { return runAttach(cmd.Context(), e, &a) },
	}
	a.addServer(cmd)
	return cmd
}

// runAttach attaches the client at the standard streams. A client that cannot be attached
// gets the reason as the response to its first requests.
func runAttach(ctx context.Context, e env, a *controlClientFlags) error {
	stopped, _, stop := e.service.signals()
	defer stop()
	conn, server, err := a.attach(ctx, e)
	if err != nil {
		if e.stdinIsTerminal {
			return err
		}
		fmt.Fprintf(e.stderr, "mcpd: %s\n", sanitize(err.Error()))
		var exit *exitError
		code := exitUsage
		if errors.As(err, &exit) {
			code = exit.code
		}
		if err := serve.RefuseStdio(stopped, e.stdin, e.stdout, "mcpd could not attach: "+sanitize(err.Error())); err != nil {
			fmt.Fprintf(e.stderr, "mcpd: %s\n", sanitize(err.Error()))
		}
		return &exitError{code: code}
	}
	defer conn.Close()
	more, err := relay(stopped, e.stdin, e.stdout, conn)
	switch {
	case err != nil:
		return findingsError("%v", err)
	case more && !a.serves(ctx, e, server.PID):
		return findingsError("the server (process %d) has stopped; start it with mcpd serve, and connect the client again", server.PID)
	}
	return nil
}

// attach connects to the server of the files.
func (a *controlClientFlags) attach(ctx context.Context, e env) (*control.Conn, attachRow, error) {
	var server attachRow
	path := a.control.path(e, &a.files)
	if path == "" {
		return nil, server, usageError("no default directory for the control socket; name the socket with --control PATH")
	}
	ctx, cancel := context.WithTimeoutCause(ctx, attachPatience, fmt.Errorf("no response within %s", attachPatience))
	defer cancel()
	conn, err := control.Open(ctx, e.resolve(path), control.Request{Action: control.Attach}, &server)
	switch {
	case errors.Is(err, control.ErrNoServer):
		return nil, server, a.noServer(e, path)
	case err != nil:
		return nil, server, findingsError("%v", err)
	}
	return conn, server, nil
}

// serves reports whether the server with this process still answers and takes calls.
func (a *controlClientFlags) serves(ctx context.Context, e env, pid int) bool {
	var row statusRow
	_, err := callControl(ctx, e.resolve(a.control.path(e, &a.files)), control.Request{Action: control.Status}, statusPatience, &row)
	return err == nil && row.PID == pid && row.Ready
}

// relay copies in to the connection and the connection to out, until the server closes the
// connection. When in ends or ctx is done, it ends the input of the server, which then
// completes its calls and closes the connection. more reports whether in was still open
// at the end. The error is one of in or out.
//
// If in is still open, its reader goroutine ends with the next read.
func relay(ctx context.Context, in io.Reader, out io.Writer, conn *control.Conn) (more bool, err error) {
	sent := make(chan error, 1)
	go func() {
		_, err := io.Copy(conn, clientReader{in})
		sent <- err
	}()
	received := make(chan error, 1)
	go func() {
		_, err := io.Copy(clientWriter{out}, conn)
		received <- err
	}()
	more = true
	for {
		select {
		case err := <-sent:
			var failed *streamError
			if errors.As(err, &failed) {
				return false, fmt.Errorf("read from the client: %w", failed.cause)
			}
			sent, more = nil, more && err != nil // any other error is one of the connection
			_ = conn.CloseWrite()
		case <-ctx.Done():
			ctx, more = context.WithoutCancel(ctx), false
			_ = conn.CloseWrite()
		case err := <-received:
			var failed *streamError
			if errors.As(err, &failed) {
				return false, fmt.Errorf("write to the client: %w", failed.cause)
			}
			return more, nil
		}
	}
}

// streamError is an error of a stream of the client, as opposed to one of the connection.
type streamError struct{ cause error }

func (e *streamError) Error() string { return e.cause.Error() }

// clientReader and clientWriter mark the errors of a stream of the client as [streamError].
type (
	clientReader struct{ io.Reader }
	clientWriter struct{ io.Writer }
)

// Read reads from the client.
func (r clientReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = &streamError{err}
	}
	return n, err
}

// Write writes to the client.
func (w clientWriter) Write(p []byte) (int, error) {
	n, err := w.Writer.Write(p)
	if err != nil {
		err = &streamError{err}
	}
	return n, err
}

// attach returns the stream of a client that attaches.
func (o *runningServer) attach() (any, error) {
	auths := o.server.Snapshot().Auths()
	switch {
	case o.front.Status().Draining:
		return nil, errors.New("the server is shutting down and takes no clients")
	case len(auths) > 0 && !slices.ContainsFunc(auths, func(a engine.Auth) bool { return a.Kind == "anonymous" }):
		// Programs that tools start run as the same user.
		return nil, errors.New("the auth blocks of the server require credentials, which an attached client does not have; connect the client over HTTP")
	}
	return control.Stream{
		Result: attachRow{PID: o.env.process.pid, Version: version()},
		Serve: func(ctx context.Context, conn *control.Conn) {
			if err := o.front.Attach(ctx, o.attached(conn.UID), conn); err != nil {
				o.logger.Warn("serve attached client", slog.String("error", err.Error()))
			}
		},
	}, nil
}

// attached returns the principal of a client at the control socket: the user of this
// process, or root.
func (o *runningServer) attached(uid int) identity.Principal {
	if own := o.env.process; uid != 0 || own.uid == strconv.Itoa(uid) {
		return serve.LocalPrincipal(own.uid, own.username)
	}
	return serve.LocalPrincipal("0", "root")
}
