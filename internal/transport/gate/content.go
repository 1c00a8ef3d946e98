package gate

import (
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"
	"sync/atomic"
	"time"
)

// checkContent returns why the body of a request may not enter, or nil. Only
// what the headers say is looked at.
func (g *Gate) checkContent(r *http.Request) *refusal {
	for _, coding := range r.Header["Content-Encoding"] {
		if !strings.EqualFold(coding, "identity") {
			return &encodedBody
		}
	}
	if r.ContentLength > g.maxBody {
		return &g.tooLarge
	}
	if r.Method == http.MethodPost && !isJSON(r.Header["Content-Type"]) {
		return &notJSON
	}
	return nil
}

// isJSON reports whether the media type is application/json, in UTF-8. What a
// form or a script of another site can send without asking first is not.
func isJSON(values []string) bool {
	if len(values) != 1 {
		return false
	}
	switch values[0] {
	case "application/json", "application/json; charset=utf-8", "application/json;charset=utf-8":
		return true // without the work of parsing
	}
	media, params, err := mime.ParseMediaType(values[0])
	if err != nil || media != "application/json" {
		return false
	}
	charset, ok := params["charset"]
	return !ok || strings.EqualFold(charset, "utf-8")
}

// dropTime is how long the body of a refused request may take: the server
// reads it before it answers, so that the connection can be used again.
const dropTime = time.Second

// bound ends the body of a request at the bounds of size, time and room. leave
// gives back the room when the request has been served.
func (g *Gate) bound(w http.ResponseWriter, r *http.Request, refused bool) (leave func()) {
	limit := g.bodyTime
	if refused {
		limit = min(limit, dropTime)
	}
	b := &boundBody{ReadCloser: http.MaxBytesReader(w, r.Body, g.maxBody), deadlines: http.NewResponseController(w), room: g.room}
	// Where the writer knows no deadlines there is no connection to hold up.
	_ = b.deadlines.SetReadDeadline(time.Now().Add(limit))
	r.Body = b
	return func() { b.room.give(b.taken.Load()) }
}

// boundBody takes room for what is read of it. It takes the read deadline off
// the connection when the body is all there: what is read from then on is the
// next request, or that the client is gone.
type boundBody struct {
	io.ReadCloser
	deadlines *http.ResponseController
	room      *room
	taken     atomic.Int64
}

// Read reads from the body.
func (b *boundBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if !b.room.take(int64(n)) {
		return 0, ErrCrowded
	}
	b.taken.Add(int64(n))
	if errors.Is(err, io.EOF) {
		_ = b.deadlines.SetReadDeadline(time.Time{})
	}
	return n, err
}
