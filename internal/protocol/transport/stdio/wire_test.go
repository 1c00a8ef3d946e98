package stdio_test

import (
	"bufio"
	"flag"
	"io"
	"net/http"
	"testing"

	"go.uber.org/goleak"

	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/protocol/mcp"
	"github.com/mcpd/mcpd/internal/protocol/mcp/mcptest"
	"github.com/mcpd/mcpd/internal/protocol/transport/stdio"
)

var update = flag.Bool("update", false, "write what the server says into the transcripts")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestTranscripts(t *testing.T) {
	mcptest.Play(t, "../../../../testdata/wire", "stream", *update, dial)
}

// link is a client on a pair of pipes.
type link struct {
	in    *io.PipeWriter
	lines chan string
	done  chan error
}

func dial(t *testing.T, s *mcp.Server) mcptest.Link {
	clientIn, serverOut := io.Pipe()
	serverIn, clientOut := io.Pipe()
	l := &link{in: clientOut, lines: make(chan string, 100), done: make(chan error, 1)}
	go func() {
		err := stdio.Serve(t.Context(), s, mcp.Peer{Principal: identity.Anonymous()}, serverIn, serverOut, grace)
		serverOut.Close()
		l.done <- err
	}()
	go func() {
		defer close(l.lines)
		lines := bufio.NewScanner(clientIn)
		for lines.Scan() {
			l.lines <- lines.Text()
		}
	}()
	return l
}

func (l *link) Send(_ http.Header, text string) {
	// A server that has ended takes nothing, which the transcript shows.
	_, _ = io.WriteString(l.in, text+"\n")
}

func (l *link) Lines() <-chan string { return l.lines }

func (l *link) Close() {
	l.in.Close()
	<-l.done
}
