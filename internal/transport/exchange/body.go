package exchange

import (
	"bytes"
	"errors"
	"mime"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/mcpd/mcpd/internal/transport/gate"
)

// Judge reports whether the body of a request is plain JSON by its headers.
// False means that the answer was written.
func Judge(w http.ResponseWriter, r *http.Request) bool {
	reason := judge(r.Header)
	if reason != "" {
		Refuse(w, http.StatusUnsupportedMediaType, reason)
	}
	return reason == ""
}

// judge returns what is wrong with the content of a body.
func judge(h http.Header) (reason string) {
	if h.Get("Content-Encoding") != "" {
		return "the body must not be encoded"
	}
	if kind := h.Get("Content-Type"); kind != "application/json" {
		if kind, _, err := mime.ParseMediaType(kind); err != nil || kind != "application/json" {
			return "the Content-Type must be application/json"
		}
	}
	return ""
}

// firstRead is how much memory a body gets before any of it has come.
const firstRead = 16 << 10

// Read reads the body of a request, of at most limit bytes, within a time.
// False means that the answer was written, and says what is wrong.
func Read(w http.ResponseWriter, r *http.Request, limit int, within time.Duration) ([]byte, bool) {
	text, status, reason := read(w, r, int64(limit), within)
	switch {
	case status == http.StatusServiceUnavailable:
		w.Header().Set("Connection", "close")
		Crowded(w)
		return nil, false
	case status != 0:
		w.Header().Set("Connection", "close")
		Refuse(w, status, reason)
		return nil, false
	}
	return text, true
}

// Crowded refuses a body for which there is no room.
func Crowded(w http.ResponseWriter) {
	w.Header().Set("Retry-After", "1")
	Refuse(w, http.StatusServiceUnavailable, "the server has no room for the body; try again in a second")
}

func read(w http.ResponseWriter, r *http.Request, limit int64, within time.Duration) (text []byte, status int, reason string) {
	if r.ContentLength > limit {
		return nil, http.StatusRequestEntityTooLarge, tooLarge(limit)
	}
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(within))
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
		return nil, http.StatusServiceUnavailable, ""
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, http.StatusRequestTimeout, "the body took too long"
	}
	return nil, http.StatusBadRequest, "the body could not be read"
}

func tooLarge(limit int64) string {
	return "the body is longer than " + strconv.FormatInt(limit, 10) + " bytes"
}
