package httpstream

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"

	"github.com/mcpd/mcpd/internal/protocol/transport/httpguard"
)

// Judge reports whether the body of a request is plain JSON by its headers.
// False means that the answer was written.
func Judge(w http.ResponseWriter, r *http.Request) bool {
	switch {
	case r.Header.Get("Content-Encoding") != "":
		Refuse(w, http.StatusUnsupportedMediaType, "the body must not be encoded")
	case !httpguard.IsJSON(r.Header):
		Refuse(w, http.StatusUnsupportedMediaType, "the Content-Type must be application/json")
	default:
		return true
	}
	return false
}

// Read reads the body of a request, of at most limit bytes; the gate bounds its
// time. False means that the answer was written, and says what is wrong.
func Read(w http.ResponseWriter, r *http.Request, limit int) ([]byte, bool) {
	text, status, reason := ReadText(r, limit)
	if status == 0 {
		return text, true
	}
	w.Header().Set("Connection", "close")
	if status == http.StatusServiceUnavailable {
		unavailable(w, reason)
	} else {
		Refuse(w, status, reason)
	}
	return nil, false
}

// unavailable answers a request that may succeed in a moment.
func unavailable(w http.ResponseWriter, reason string) {
	w.Header().Set("Retry-After", "1")
	Refuse(w, http.StatusServiceUnavailable, reason)
}

// ReadText reads the body of a request as [Read] does, and returns the status and the
// reason of a failure; the status is 0 if there is none.
func ReadText(r *http.Request, limit int) (text []byte, status int, reason string) {
	err := errTooLong
	if r.ContentLength <= int64(limit) {
		text, err = readAll(r.Body, r.ContentLength, limit)
	}
	var over *http.MaxBytesError
	switch {
	case err == nil:
		return text, 0, ""
	case errors.Is(err, errTooLong), errors.As(err, &over):
		return nil, http.StatusRequestEntityTooLarge, fmt.Sprintf("the request body is longer than %d bytes", limit)
	case errors.Is(err, httpguard.ErrCrowded):
		return nil, http.StatusServiceUnavailable, "the server has no room for the body; try again in a second"
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, http.StatusRequestTimeout, "the body did not arrive in time"
	case errors.Is(err, io.ErrUnexpectedEOF):
		return nil, http.StatusBadRequest, "the body ended early"
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
func readAll(body io.Reader, announced int64, limit int) ([]byte, error) {
	if announced < 0 {
		announced = unannounced
	}
	// There is room for one byte more, so that the end is seen without growing.
	text := make([]byte, 0, min(announced, firstRead)+1)
	for {
		n, err := body.Read(text[len(text):cap(text)])
		text = text[:len(text)+n]
		switch {
		case len(text) > limit:
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
