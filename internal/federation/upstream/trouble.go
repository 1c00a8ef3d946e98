package upstream

import (
	"errors"
	"fmt"
	"net/http"
)

// trouble is why a request over HTTP came to nothing, in words for the operator: those of
// the client library tell the way that the error has gone.
type trouble struct{ error }

// opens reports whether a request is one by which a connection is made.
func (t *watched) opens(out *http.Request) bool {
	return out.Method == http.MethodPost || t.plainEvents
}

// troubled notes why a request came to nothing, and returns it.
func (t *watched) troubled(of *Call, out *http.Request, err error) error {
	switch {
	case of != nil:
		of.trouble.Store(&trouble{err})
	case t.opens(out):
		t.trouble.Store(&trouble{err})
	}
	return err
}

// errNoServer is of an answer that no server of MCP gives.
var errNoServer = errors.New("what answers at this URL is no MCP server: look at its path, which is mostly /mcp")

// refusal tells what a status of failure says of the server, and what may be done.
func refusal(status int, within bool) error {
	said := fmt.Sprintf("%d %s", status, http.StatusText(status))
	switch {
	case status == http.StatusUnauthorized:
		return fmt.Errorf("the server wants another credential (%s): look at the header of the block, and its secret", said)
	case status == http.StatusForbidden:
		return fmt.Errorf("the server does not let mcpd in (%s): look at what the credential of the block may do", said)
	case status == http.StatusNotFound && within:
		return fmt.Errorf("the server does not know the session any more (%s)", said)
	case status == http.StatusBadRequest, status == http.StatusNotFound, status == http.StatusMethodNotAllowed:
		return fmt.Errorf("nothing of MCP is at this URL (%s): look at its path, which is mostly /mcp, and whether it begins with https", said)
	case status >= 300 && status < 400:
		return fmt.Errorf("the server is elsewhere (%s), where mcpd does not follow: write the URL that is meant", said)
	case status == http.StatusTooManyRequests:
		return fmt.Errorf("the server is asked too often (%s)", said)
	case status >= 500:
		return fmt.Errorf("the server fails (%s): look at its own log", said)
	}
	return fmt.Errorf("the server refuses (%s)", said)
}
