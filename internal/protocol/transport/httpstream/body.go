package httpstream

import (
	"errors"
	"io"
	"mime"
	"net/http"
	"os"
	"strconv"

	"github.com/mcpd/mcpd/internal/protocol/transport/httpguard"
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

// Read reads the body of a request, of at most limit bytes; the gate bounds its
// time. False means that the answer was written, and says what is wrong.
func Read(w http.ResponseWriter, r *http.Request, limit int) ([]byte, bool) {
	text, status, reason := read(r, int64(limit))
	switch {
	case status == http.StatusServiceUnavailable:
		w.Header().Set("Connection", "close")
		unavailable(w, "the server has no room for the body; try again in a second")
		return nil, false
	case status != 0:
		w.Header().Set("Connection", "close")
		Refuse(w, status, reason)
		return nil, false
	}
	return text, true
}

// unavailable answers a request that may succeed in a moment.
func unavailable(w http.ResponseWriter, reason string) {
	w.Header().Set("Retry-After", "1")
	Refuse(w, http.StatusServiceUnavailable, reason)
}

func read(r *http.Request, limit int64) (text []byte, status int, reason string) {
	if r.ContentLength > limit {
		return nil, http.StatusRequestEntityTooLarge, tooLarge(limit)
	}
	text, err := readAll(r.Body, r.ContentLength, limit)
	var over *http.MaxBytesError
	switch {
	case err == nil:
		return text, 0, ""
	case errors.Is(err, errTooLong), errors.As(err, &over):
		return nil, http.StatusRequestEntityTooLarge, tooLarge(limit)
	case errors.Is(err, httpguard.ErrCrowded):
		return nil, http.StatusServiceUnavailable, ""
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, http.StatusRequestTimeout, "the body took too long"
	}
	return nil, http.StatusBadRequest, "the body could not be read"
}

const (
	// firstRead is how much memory a body gets before any of it has come.
	firstRead = 16 << 10
	// unannounced is how much one gets that does not say how long it is.
	unannounced = 512
)

var errTooLong = errors.New("the body is too long")

// readAll reads a body of which a length was announced, or less than 0.
func readAll(body io.Reader, announced, limit int64) ([]byte, error) {
	if announced < 0 {
		announced = unannounced
	}
	// There is room for one byte more, so that the end is seen without growing.
	text := make([]byte, 0, min(announced, firstRead)+1)
	for {
		n, err := body.Read(text[len(text):cap(text)])
		text = text[:len(text)+n]
		switch {
		case int64(len(text)) > limit:
			return nil, errTooLong
		case err == io.EOF:
			return text, nil
		case err != nil:
			return nil, err
		case len(text) == cap(text):
			text = append(text, 0)[:len(text)]
		}
	}
}

func tooLarge(limit int64) string {
	return "the body is longer than " + strconv.FormatInt(limit, 10) + " bytes"
}
