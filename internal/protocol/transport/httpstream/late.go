package httpstream

import (
	"net/http"

	"github.com/mcpd/mcpd/internal/protocol/mcp"
	"github.com/mcpd/mcpd/internal/protocol/transport/httpguard"
)

// LateFor returns what ends the response to r while its handler goes on. It is
// nil where the response only ends with the handler: that of HTTP/2, and one
// whose writer cannot give its connection away.
func (a *Answer) LateFor(r *http.Request) mcp.Late {
	if r.ProtoMajor != 1 || !givesAway(a.w) {
		return nil
	}
	a.body = r.Body
	return (*late)(a)
}

// givesAway reports whether [http.ResponseController.Hijack] may succeed.
func givesAway(w http.ResponseWriter) bool {
	for {
		switch inner := w.(type) {
		case http.Hijacker:
			return true
		case interface{ Unwrap() http.ResponseWriter }:
			w = inner.Unwrap()
		default:
			return false
		}
	}
}

// late is an answer whose handler goes on.
type late Answer

// Late is [Answer.Finish], and ends the connection, as nobody knows when the
// handler will end, whether or not the client has read the answer. That of a
// stream ends with the handler.
func (l *late) Late(r mcp.Reply) {
	a := (*Answer)(l)
	defer httpguard.Leave(a.body)
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.streams {
		a.finish(r)
		return
	}
	a.w.Header().Set("Connection", "close")
	a.late = true
	a.finish(r)
	a.outlet.Renew()
	a.dropped(a.flush())
	a.outlet.End()
	if conn, _, err := a.control.Hijack(); err == nil {
		_ = conn.Close()
	}
}
