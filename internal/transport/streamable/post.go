package streamable

import (
	"bytes"
	"context"
	"errors"
	"mime"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/mcpd/mcpd/internal/mcp"
	"github.com/mcpd/mcpd/internal/transport/gate"
)

// post serves one message (2026-07-28 basic/transports/streamable-http,
// Sending Messages).
func (h *handler) post(w http.ResponseWriter, r *http.Request) {
	accepts := acceptOf(r)
	if !accepts.json && !accepts.events {
		refuse(w, http.StatusNotAcceptable, "the Accept header must list application/json and text/event-stream")
		return
	}
	if status, reason := judgeContent(r.Header); status != 0 {
		refuse(w, status, reason)
		return
	}
	peer, ok := h.peer(w, r)
	if !ok {
		return
	}
	text, status, reason := h.read(w, r)
	if status != 0 {
		w.Header().Set("Connection", "close")
		refuse(w, status, reason)
		return
	}
	if id := r.Header.Get(headerSession); id != "" && accepts.events && r.Header.Get(headerVersion) < modernVersion {
		if session, refusal := h.server.Session(peer, id); refusal == mcp.Served {
			h.postOnSession(w, r, text, session, mcp.Exchange{Peer: peer, Session: id})
			return
		}
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	a := newAnswer(w, h.options, cancel)
	x := mcp.Exchange{Peer: peer, Session: r.Header.Get(headerSession)}
	if accepts.events {
		x.Emit = a.send
	}
	a.finish(h.server.Exchange(ctx, text, x))
}

// judgeContent refuses bodies that are not plain JSON.
func judgeContent(h http.Header) (status int, reason string) {
	if h.Get("Content-Encoding") != "" {
		return http.StatusUnsupportedMediaType, "the body must not be encoded"
	}
	if kind := h.Get("Content-Type"); kind != "application/json" {
		if kind, _, err := mime.ParseMediaType(kind); err != nil || kind != "application/json" {
			return http.StatusUnsupportedMediaType, "the Content-Type must be application/json"
		}
	}
	return 0, ""
}

// firstRead is how much memory a body gets before any of it has come.
const firstRead = 16 << 10

// read reads the body, within its bounds of size and time. A status other than
// 0 says what is wrong with it.
func (h *handler) read(w http.ResponseWriter, r *http.Request) (text []byte, status int, reason string) {
	limit := int64(h.server.MaxMessage())
	if r.ContentLength > limit {
		return nil, http.StatusRequestEntityTooLarge, tooLarge(limit)
	}
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(h.options.ReadTimeout))
	defer func() { _ = control.SetReadDeadline(time.Time{}) }()
	var b bytes.Buffer
	b.Grow(int(min(max(r.ContentLength, 0), firstRead)) + bytes.MinRead)
	_, err := b.ReadFrom(http.MaxBytesReader(w, r.Body, limit))
	var over *http.MaxBytesError
	switch {
	case err == nil:
		return b.Bytes(), 0, ""
	case errors.As(err, &over):
		return nil, http.StatusRequestEntityTooLarge, tooLarge(limit)
	case errors.Is(err, gate.ErrCrowded):
		w.Header().Set("Retry-After", "1")
		return nil, http.StatusServiceUnavailable, "the server has no room for the body; try again in a second"
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, http.StatusRequestTimeout, "the body took too long"
	}
	return nil, http.StatusBadRequest, "the body could not be read"
}

func tooLarge(limit int64) string {
	return "the body is longer than " + strconv.FormatInt(limit, 10) + " bytes"
}
