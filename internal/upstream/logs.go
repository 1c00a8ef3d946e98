package upstream

import (
	"context"
	"log/slog"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpd/mcpd/internal/clip"
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
func (l *Link) hearLogs(ctx context.Context, debug bool) {
	can := l.session.InitializeResult().Capabilities
	//lint:ignore SA1019 servers of earlier revisions than 2026-07-28 are asked so
	if l.Modern() || can == nil || can.Logging == nil {
		return
	}
	//lint:ignore SA1019 as above
	if err := l.session.SetLoggingLevel(ctx, &mcp.SetLoggingLevelParams{Level: leastLevel(debug)}); err != nil {
		l.options.Logger.Debug("an upstream server does not log", slog.String("upstream", l.place.Name), logged("error", err.Error()))
	}
}

// hearDebug has a server that has sessions log more, before the call of ctx is made. A
// session has one level for the calls of all, so that it stays so.
func (l *Link) hearDebug(ctx context.Context) {
	l.debug.Do(func() {
		// It is no part of the call, and goes on when that is cancelled.
		ctx, cancel := context.WithTimeout(context.WithValue(context.WithoutCancel(ctx), callKey{}, (*Call)(nil)), leaveTime)
		defer cancel()
		l.hearLogs(ctx, true)
	})
}

// maxNoise is how much of the words of a server one record of the log has, in bytes.
const maxNoise = clip.Least

// logged is what a server says, for the log. Who hides secrets in it sees where it was cut:
// half of one may stand there.
func logged(key, text string) slog.Attr { return slog.String(key, clip.Text(text, maxNoise)) }
