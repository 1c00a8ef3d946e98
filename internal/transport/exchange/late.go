package exchange

import "github.com/mcpd/mcpd/internal/mcp"

// Late is [Answer.Finish] while the handler goes on. The connection ends with
// the response, as nobody knows when the handler will; that of a stream, or one
// that cannot be taken from the server, ends with the handler.
func (a *Answer) Late(r mcp.Reply) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.streams {
		a.finish(r)
		return
	}
	a.w.Header().Set("Connection", "close")
	a.finish(r)
	a.limit()
	if a.flush() != nil {
		return
	}
	if conn, _, err := a.control.Hijack(); err == nil {
		_ = conn.Close()
	}
}
