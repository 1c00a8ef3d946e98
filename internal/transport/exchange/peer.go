package exchange

import (
	"net/http"

	"github.com/mcpd/mcpd/internal/authn"
	"github.com/mcpd/mcpd/internal/mcp"
)

// Enter returns who sent the request; false means that the answer was written.
func Enter(w http.ResponseWriter, r *http.Request, door authn.Door) (mcp.Peer, bool) {
	principal, source, err := door.Enter(r)
	if err != nil {
		Refuse(w, http.StatusUnauthorized, "the credential was not accepted")
		return mcp.Peer{}, false
	}
	return mcp.Peer{Principal: principal, Source: source, Headers: r.Header}, true
}
