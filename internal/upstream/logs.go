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

// logLevel is the least level of what servers are asked to log of calls.
const logLevel = "info"

// hearLogs asks a server that has sessions to log. One that will not is heard no less.
func (l *Link) hearLogs(ctx context.Context) {
	can := l.session.InitializeResult().Capabilities
	//lint:ignore SA1019 servers of earlier revisions than 2026-07-28 are asked so
	if l.Modern() || can == nil || can.Logging == nil {
		return
	}
	//lint:ignore SA1019 as above
	if err := l.session.SetLoggingLevel(ctx, &mcp.SetLoggingLevelParams{Level: logLevel}); err != nil {
		l.options.Logger.Debug("an upstream server does not log", slog.String("upstream", l.place.Name), logged("error", err.Error()))
	}
}

// maxNoise is how much of the words of a server one record of the log has, in bytes.
const maxNoise = clip.Least

// logged is what a server says, for the log. Who hides secrets in it sees where it was cut:
// half of one may stand there.
func logged(key, text string) slog.Attr { return slog.String(key, clip.Text(text, maxNoise)) }
