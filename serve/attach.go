package serve

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"time"

	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/base/workqueue"
	"github.com/mcpd/mcpd/internal/protocol/mcp"
	"github.com/mcpd/mcpd/internal/protocol/transport/stdio"
)

// attachWriteTimeout is the time for an attached client to read one message.
const attachWriteTimeout = 30 * time.Second

// The reasons to serve no attached client.
var (
	errAttachDraining    = errors.New("the server is shutting down and takes no clients")
	errAttachCredentials = errors.New("the auth blocks of the server require credentials, which an attached client does not have; connect the client over HTTP")
)

// CheckAttach returns an error if the server serves no attached clients: while it
// shuts down, and while its auth blocks require credentials. Programs that tools
// start run as the same user, and could otherwise attach without any.
func (f *Front) CheckAttach() error {
	if f.Status().Draining {
		return errAttachDraining
	}
	return f.checkAttached()
}

// checkAttached returns an error if the auth blocks require credentials now.
func (f *Front) checkAttached() error {
	auths := f.engine.Snapshot().Auths()
	if len(auths) > 0 && !slices.ContainsFunc(auths, func(a engine.Auth) bool { return a.Kind == "anonymous" }) {
		return errAttachCredentials
	}
	return nil
}

// Attach is [Front.Stdio] for a client of a server that also has others: the client
// is the user local, at the other end of conn. The error is the reason for which the
// server ended the connection: the client does not read its messages, all attached
// clients together have too many unread or running ones, or auth blocks require
// credentials, also after a later reload. The caller checks [Front.CheckAttach]
// before, and closes conn after.
func (f *Front) Attach(ctx context.Context, local identity.Principal, conn net.Conn) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer f.engine.Watch(func([]string) {
		if err := f.checkAttached(); err != nil {
			cancel(err)
		}
	})()
	peer := mcp.Peer{Principal: local, Source: identity.Source{Listener: "stdio"}, Transport: "stdio"}
	// The clients are the same user, but share the budget like different ones.
	number := strconv.FormatUint(f.attaches.Add(1), 10)
	return stdio.Serve(ctx, f.mcp, peer, struct{ io.Reader }{conn}, conn, stdio.Options{
		Grace: f.options.Grace, WriteTimeout: attachWriteTimeout, Check: f.checkAttached,
		Budget: f.attached, Client: workqueue.ClientOf(nil, netip.Addr{}, "attached "+number),
	})
}
