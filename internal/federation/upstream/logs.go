package upstream

import (
	"context"
	"log/slog"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpd/mcpd/internal/base/truncate"
)

// logLevelKey is the member of _meta by which servers without sessions are asked to log
// (2026-07-28 server/utilities/logging): they log nothing otherwise.
const logLevelKey = "io.modelcontextprotocol/logLevel"

// leastLevel is the level from which on servers are asked to log of calls.
//
//lint:ignore SA1019 servers of all revisions know it
func leastLevel(debug bool) mcp.LoggingLevel {
	if debug {
		return "debug"
	}
	return "info"
}

// hearLogs asks a server that has sessions to log, of what is for developers, too, where
// debug says so. One that will not is heard no less.
func (l *Link) hearLogs(ctx context.Context, debug bool) error {
	can := l.session.InitializeResult().Capabilities
	//lint:ignore SA1019 servers of earlier revisions than 2026-07-28 are asked so
	if l.Modern() || can == nil || can.Logging == nil {
		return nil
	}
	//lint:ignore SA1019 as above
	err := l.session.SetLoggingLevel(ctx, &mcp.SetLoggingLevelParams{Level: leastLevel(debug)})
	if err != nil {
		l.options.Logger.Debug("an upstream server does not log", slog.String("upstream", l.place.Name), logged("error", err.Error()))
	}
	return err
}

// debugging has a session log more while calls want that. It has one level for the calls of
// all: no other is told what it did not ask for, and none pays for it longer than it must.
type debugging struct {
	mu    sync.Mutex
	calls int  // that want it
	on    bool // the server may log so
}

// hearDebug has a server that has sessions log more, before the call of ctx is made, until
// leave is called. Neither is a part of the call, or takes longer than [leaveTime].
func (l *Link) hearDebug(ctx context.Context) (leave func()) {
	ctx = context.WithValue(context.WithoutCancel(ctx), callKey{}, (*Call)(nil))
	level := func(debug bool) error {
		ctx, cancel := context.WithTimeout(ctx, leaveTime)
		defer cancel()
		return l.hearLogs(ctx, debug)
	}
	d := &l.debug
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.calls++; !d.on {
		d.on = true
		_ = level(true) // it has been said
	}
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.calls--; d.calls == 0 {
			d.on = level(false) != nil
		}
	}
}

// maxNoise is how much of the words of a server one record of the log has, in bytes.
const maxNoise = truncate.Least

// logged is what a server says, for the log. Who hides secrets in it sees where it was cut:
// half of one may stand there.
func logged(key, text string) slog.Attr { return slog.String(key, truncate.Text(text, maxNoise)) }
