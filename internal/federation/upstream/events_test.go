package upstream

import (
	"fmt"
	"io"
	"strings"
	"testing"
)

// The client library takes an event for a message by what is left of its name without
// blanks, and over HTTP with SSE whatever its name is.
func TestNoEventPassesTheWireByItsName(t *testing.T) {
	const twice = `{"a":1,"a":1}` // which may not pass
	const refused, none = "the server sends what may not pass", "<nil>"
	for _, row := range []struct {
		name, stream string
		streamable   bool
		passed, err  string
	}{
		{"without a name", "data: " + twice + "\n\n", true, "", refused},
		{"an empty name", "event:\ndata: " + twice + "\n\n", true, "", refused},
		{"a name of a blank", "event:  \ndata: " + twice + "\n\n", true, "", refused},
		{"a name behind blanks", "event: \t message \ndata: " + twice + "\n\n", true, "", refused},
		{"the last of two names", "event: other\nevent:\ndata: " + twice + "\n\n", true, "", refused},
		{"another name", "event: other\nid: 7\ndata: " + twice + "\n\n", true, "id: 7\n\n", none},
		{"another name over HTTP with SSE", "event: other\ndata: " + twice + "\n\n", false, "", none},
		{"where to post to", "event: endpoint\ndata: /messages\n\n", false, "event: endpoint\ndata: /messages\n\n", none},
		{"where to post to, twice", "event: endpoint\ndata: /messages\n\nevent: endpoint\ndata: " + twice + "\n\n", false, "event: endpoint\ndata: /messages\n\n", none},
		{"where to post to over Streamable HTTP", "event: endpoint\ndata: /messages\n\n", true, "", none},
	} {
		t.Run(row.name, func(t *testing.T) {
			w, c := running()
			passed, err := io.ReadAll(newEvents(io.NopCloser(strings.NewReader(row.stream)), w, &stream{of: c}, row.streamable))
			if string(passed) != row.passed || !strings.HasPrefix(fmt.Sprint(err), row.err) {
				t.Errorf("%q passes, %v", passed, err)
			}
		})
	}
}
