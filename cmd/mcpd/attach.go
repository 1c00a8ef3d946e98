package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/ops/control"
	"github.com/mcpd/mcpd/serve"
)

// attachTimeout is the timeout to connect to the server.
const attachTimeout = 10 * time.Second

// attachResult is the response of a server to a client that attaches.
type attachResult struct {
	PID     int    `json:"pid"`
	Version string `json:"version"`
	// Client is the number of the client.
	Client uint64 `json:"client"`
}

// detachedResult is the response of a server to a client that it disconnected.
type detachedResult struct {
	PID int `json:"pid"`
	// Reason is empty if the server did not end the connection, or does not know the client.
	Reason string `json:"reason"`
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
answer to its first requests, and exits with code 1. If the server disconnects the
client, attach prints the reason and exits with code 1.`,
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
	if err != nil {
		return findingsError("%v", err)
	}
	reason := a.detached(ctx, e, server)
	switch {
	case reason != "":
		return findingsError("the server disconnected the client: %s", sanitize(reason))
	case more && !a.serves(ctx, e, server.PID):
		return findingsError("the server (process %d) has stopped; start it with mcpd serve, and connect the client again", server.PID)
	}
	return nil
}

// attach connects to the server of the files.
func (a *controlClientFlags) attach(ctx context.Context, e env) (*control.Conn, attachResult, error) {
	var server attachResult
	path := a.control.path(e, &a.files)
	if path == "" {
		return nil, server, usageError("no default directory for the control socket; name the socket with --control PATH")
	}
	ctx, cancel := context.WithTimeoutCause(ctx, attachTimeout, fmt.Errorf("no response within %s", attachTimeout))
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

// detached returns the reason for which the server ended the connection; "" if the server did not,
// or does not answer.
func (a *controlClientFlags) detached(ctx context.Context, e env, server attachResult) string {
	ctx, cancel := context.WithTimeout(ctx, statusPatience)
	defer cancel()
	var row detachedResult
	err := control.Do(ctx, e.resolve(a.control.path(e, &a.files)), control.Request{Action: control.Detached, Client: server.Client}, &row)
	if err != nil || row.PID != server.PID {
		return ""
	}
	return row.Reason
}

// serves reports whether the server with this process still answers and takes calls.
func (a *controlClientFlags) serves(ctx context.Context, e env, pid int) bool {
	var row statusResult
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

// detachments are the reasons for which a server disconnected its last clients.
type detachments struct {
	mu      sync.Mutex
	clients uint64
	reasons []detachment // the oldest first
}

type detachment struct {
	client uint64
	reason string
}

// maxDetachments bounds the reasons that no client has asked for.
const maxDetachments = 64

// next returns the number of the next client.
func (d *detachments) next() uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.clients++
	return d.clients
}

func (d *detachments) add(client uint64, reason string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.reasons) == maxDetachments {
		d.reasons = slices.Delete(d.reasons, 0, 1)
	}
	d.reasons = append(d.reasons, detachment{client, reason})
}

// take returns the reason of a client, and removes it; "" if there is none.
func (d *detachments) take(client uint64) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	i := slices.IndexFunc(d.reasons, func(one detachment) bool { return one.client == client })
	if i < 0 {
		return ""
	}
	reason := d.reasons[i].reason
	d.reasons = slices.Delete(d.reasons, i, i+1)
	return reason
}

// attach returns the stream of a client that attaches.
func (o *runningServer) attach() (any, error) {
	if err := o.front.CheckAttach(); err != nil {
		return nil, err
	}
	client := o.detachments.next()
	return control.Stream{
		Result: attachResult{PID: o.env.process.pid, Version: version(), Client: client},
		Serve: func(ctx context.Context, conn *control.Conn) {
			if err := o.front.Attach(ctx, o.attached(conn.UID), conn); err != nil {
				o.detachments.add(client, strings.ReplaceAll(err.Error(), "\n", "; ")) // before the client sees the end
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
