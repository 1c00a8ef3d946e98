package stdio

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/mcpd/mcpd/internal/protocol/mcp"
)

// ErrDraining is returned when the server takes no new clients any more.
var ErrDraining = errors.New("the server is shutting down")

// errCut is returned when calls were cancelled that outlived the input for too long.
var errCut = errors.New("calls did not end in time and were cut off")

// errStuck is returned when the client stopped reading and everything had to end.
var errStuck = errors.New("the client does not take what is written to it")

// patience is how long calls that were cancelled may take to end.
const patience = 5 * time.Second

// Serve serves one client until in ends, the client asks for shutdown, or the
// server drains; what is under way then comes to its end before Serve returns.
// Calls that outlive this by more than grace are cancelled. When ctx ends, what is under way is cancelled: to let it finish,
// call [mcp.Server.Drain] first. The error is that of in or out, or says that
// calls were cut off; an end of in is none.
//
// When Serve returns while in is still open, in is closed if it is an
// [io.Closer], which gives up the read that is under way.
func Serve(ctx context.Context, s *mcp.Server, peer mcp.Peer, in io.Reader, out io.Writer, grace time.Duration) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w := newWriter(out, cancel)
	conn := s.Connect(peer, w.send)
	if conn == nil {
		return ErrDraining
	}
	read := make(chan error, 1)
	go receive(ctx, in, conn, s.MaxMessage(), func(err error) { read <- err })

	var err error
	select {
	case err = <-read:
	case <-conn.Ending():
	case <-ctx.Done():
	}
	conn.End()
	err = errors.Join(err, outlast(ctx, conn, grace))
	cancel()
	if !settled(ctx, conn) {
		return errors.Join(err, w.failure(), errStuck)
	}
	conn.Close()
	w.close()
	if closer, ok := in.(io.Closer); ok {
		_ = closer.Close()
	}
	return errors.Join(err, w.failure())
}

// outlast waits until nothing is under way, as long as ctx and grace allow.
func outlast(ctx context.Context, conn *mcp.Conn, grace time.Duration) error {
	overdue := time.NewTimer(grace)
	defer overdue.Stop()
	select {
	case <-conn.Done():
		return nil
	case <-ctx.Done():
		return nil
	case <-overdue.C:
		return errCut
	}
}

// settled waits until nothing is under way; once ctx has ended, not for ever.
func settled(ctx context.Context, conn *mcp.Conn) bool {
	select {
	case <-conn.Done():
		return true
	case <-ctx.Done():
	}
	select {
	case <-conn.Done():
		return true
	case <-time.After(patience):
		return false
	}
}
