package exchange

import (
	"io"

	"github.com/mcpd/mcpd/internal/mcp"
)

// Late is [Answer.Finish] while the handler goes on: the connection ends with
// the response, as nobody knows when the handler will. Where it cannot be taken
// from the server, it ends with the handler.
func (a *Answer) Late(r mcp.Reply) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.streams {
		a.w.Header().Set("Connection", "close")
	}
	a.finish(r)
	a.limit()
	if a.flush() != nil {
		return
	}
	conn, _, err := a.control.Hijack()
	if err != nil {
		return
	}
	if a.streams && a.chunks {
		// The last chunk, which the server will not write.
		_, _ = io.WriteString(conn, "0\r\n\r\n")
	}
	_ = conn.Close()
}
