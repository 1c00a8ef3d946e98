package httpstream

import (
	"net/http"

	"github.com/mcpd/mcpd/internal/auth/authn"
	"github.com/mcpd/mcpd/internal/base/workqueue"
	"github.com/mcpd/mcpd/internal/protocol/mcp"
	"github.com/mcpd/mcpd/internal/protocol/transport/httpguard"
)

// Caller is who sent a request, once it was let in.
type Caller struct {
	Peer mcp.Peer
	// Pass is what the caller goes by from then on.
	Pass *authn.Pass
	// Client is whom the request and its answer count for.
	Client workqueue.Client
}

// Enter returns who sent the request; false means that the answer was written, and that
// there is nobody.
func Enter(w http.ResponseWriter, r *http.Request, door authn.Door) (*Caller, bool) {
	principal, source, pass, err := door.Enter(r)
	if err != nil {
		turnAway(w, r, door, err)
		return nil, false
	}
	client, ok := httpguard.Enter(r, &principal)
	if !ok {
		unavailable(w, httpguard.TooManyInUse)
		return nil, false
	}
	return &Caller{mcp.Peer{Principal: principal, Source: source, Headers: r.Header}, pass, client}, true
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
