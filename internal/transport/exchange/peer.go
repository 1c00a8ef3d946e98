package exchange

import (
	"net/http"

	"github.com/mcpd/mcpd/internal/authn"
	"github.com/mcpd/mcpd/internal/mcp"
)

// Enter returns who sent the request, and what they go by from then on; false
// means that the answer was written.
func Enter(w http.ResponseWriter, r *http.Request, door authn.Door) (mcp.Peer, *authn.Pass, bool) {
	principal, source, pass, err := door.Enter(r)
	if err != nil {
		turnAway(w, r, door, err)
		return mcp.Peer{}, nil, false
	}
	return mcp.Peer{Principal: principal, Source: source, Headers: r.Header}, pass, true
}

// Holds reports whether who sent the request may still enter, after a body that may
// have taken long; false means that the answer was written.
func Holds(w http.ResponseWriter, r *http.Request, door authn.Door, pass *authn.Pass) bool {
	err := pass.Holds()
	if err != nil {
		turnAway(w, r, door, err)
	}
	return err == nil
}

func turnAway(w http.ResponseWriter, r *http.Request, door authn.Door, err error) {
	status, message := door.Refuse(w.Header(), r, err)
	Refuse(w, status, message)
}
