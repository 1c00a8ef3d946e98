package httpstream

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"

	"github.com/mcpd/mcpd/internal/auth/authn"
	"github.com/mcpd/mcpd/internal/base/workqueue"
	"github.com/mcpd/mcpd/internal/protocol/mcp"
	"github.com/mcpd/mcpd/internal/protocol/transport/httpguard"
)

// CheckContentType reports whether the headers of a request declare a plain
// JSON body. If it returns false, it has written the response.
func CheckContentType(w http.ResponseWriter, r *http.Request) bool {
	switch {
	case r.Header.Get("Content-Encoding") != "":
		WriteError(w, http.StatusUnsupportedMediaType, "the body must not be encoded")
	case !httpguard.IsJSON(r.Header):
		WriteError(w, http.StatusUnsupportedMediaType, "the Content-Type must be application/json")
	default:
		return true
	}
	return false
}

// Read reads the body of a request, of at most limit bytes; the guard bounds
// its time. If it returns false, it has written the response.
func Read(w http.ResponseWriter, r *http.Request, limit int) ([]byte, bool) {
	text, status, reason := ReadText(r, limit)
	if status == 0 {
		return text, true
	}
	w.Header().Set("Connection", "close")
	if status == http.StatusServiceUnavailable {
		unavailable(w, reason)
	} else {
		WriteError(w, status, reason)
	}
	return nil, false
}

func unavailable(w http.ResponseWriter, reason string) {
	w.Header().Set("Retry-After", "1")
	WriteError(w, http.StatusServiceUnavailable, reason)
}

// ReadText reads the body of a request as [Read] does. It returns the status
// and the reason of a failure; the status is 0 if there is none.
func ReadText(r *http.Request, limit int) (text []byte, status int, reason string) {
	err := errTooLong
	if r.ContentLength <= int64(limit) {
		text, err = readAll(r.Body, r.ContentLength, limit)
	}
	var tooLarge *http.MaxBytesError
	switch {
	case err == nil:
		return text, 0, ""
	case errors.Is(err, errTooLong), errors.As(err, &tooLarge):
		return nil, http.StatusRequestEntityTooLarge, fmt.Sprintf("the request body is longer than %d bytes", limit)
	case errors.Is(err, httpguard.ErrOverBudget):
		return nil, http.StatusServiceUnavailable, "the server has no room for the body; try again in a second"
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, http.StatusRequestTimeout, "the body did not arrive in time"
	case errors.Is(err, io.ErrUnexpectedEOF):
		return nil, http.StatusBadRequest, "the body ended early"
	}
	return nil, http.StatusBadRequest, "the body could not be read"
}

const (
	// initialBuffer is the buffer size before the first byte arrives.
	initialBuffer = 16 << 10
	// unknownLengthBuffer is the buffer size for a body without a length.
	unknownLengthBuffer = 512
)

var errTooLong = errors.New("the body is too long")

// readAll reads a body with the announced length; negative if unknown.
func readAll(body io.Reader, announced int64, limit int) ([]byte, error) {
	if announced < 0 {
		announced = unknownLengthBuffer
	}
	// One extra byte, so that the end is detected without growing the buffer.
	text := make([]byte, 0, min(announced, initialBuffer)+1)
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

// AcceptTypes are the response types that a client accepts.
type AcceptTypes struct{ JSON, Events bool }

// ParseAccept parses the Accept header (RFC 9110 section 12.5.1). Without one,
// the client accepts anything.
func ParseAccept(r *http.Request) AcceptTypes {
	values := r.Header["Accept"]
	if len(values) == 0 {
		return AcceptTypes{JSON: true, Events: true}
	}
	if len(values) == 1 && values[0] == "application/json, text/event-stream" {
		return AcceptTypes{JSON: true, Events: true} // without parsing
	}
	var a AcceptTypes
	for _, value := range values {
		for kind := range strings.SplitSeq(value, ",") {
			kind, parameters, _ := strings.Cut(kind, ";")
			if hasZeroWeight(parameters) {
				continue
			}
			switch strings.ToLower(strings.TrimSpace(kind)) {
			case "*/*":
				a.JSON, a.Events = true, true
			case "application/json", "application/*":
				a.JSON = true
			case "text/event-stream", "text/*":
				a.Events = true
			}
		}
	}
	return a
}

// hasZeroWeight reports whether the parameters of a media type set the weight
// 0.
func hasZeroWeight(parameters string) bool {
	weight, ok := strings.CutPrefix(strings.TrimSpace(parameters), "q=")
	return ok && strings.Trim(weight, "0.") == "" && strings.HasPrefix(weight, "0")
}

// Caller is the authenticated sender of a request.
type Caller struct {
	Peer mcp.Peer
	// Access is the access that the caller authenticated with.
	Access *authn.Access
	// Client is the client that the request and its response count for.
	Client workqueue.Client
}

// Authenticate returns the sender of the request. If it returns false, it has
// written the response.
func Authenticate(w http.ResponseWriter, r *http.Request, middleware authn.Middleware) (*Caller, bool) {
	principal, source, access, err := middleware.Authenticate(r)
	if err != nil {
		writeAuthError(w, r, middleware, err)
		return nil, false
	}
	client, ok := httpguard.Admit(r, &principal)
	if !ok {
		unavailable(w, httpguard.TooManyInUse)
		return nil, false
	}
	return &Caller{mcp.Peer{Principal: principal, Source: source, Headers: r.Header}, access, client}, true
}

// CheckAccess reports whether the sender still has access, after a body that
// may have taken long. If it returns false, it has written the response.
func CheckAccess(w http.ResponseWriter, r *http.Request, middleware authn.Middleware, access *authn.Access) bool {
	err := access.Check()
	if err != nil {
		writeAuthError(w, r, middleware, err)
	}
	return err == nil
}

func writeAuthError(w http.ResponseWriter, r *http.Request, middleware authn.Middleware, err error) {
	status, message := middleware.Reject(w.Header(), r, err)
	WriteError(w, status, message)
}

// WriteError answers a request that does not reach the protocol.
func WriteError(w http.ResponseWriter, status int, reason string) {
	_ = writeJSON(w, status, mcp.Refuse(mcp.Malformed, reason).Frame, false)
}

// typeJSON is shared by all responses and never modified.
var typeJSON = []string{"application/json"}

func writeJSON(w http.ResponseWriter, status int, f mcp.Frame, flushed bool) error {
	writeHead(w, status, f, flushed)
	_, err := f.WriteTo(w)
	return err
}

// writeHead writes the header of a response. net/http sets the length of a
// response that it buffers until the handler returns; a flushed response needs
// it here.
func writeHead(w http.ResponseWriter, status int, f mcp.Frame, flushed bool) {
	h := w.Header()
	h["Content-Type"] = typeJSON
	if flushed {
		h["Content-Length"] = []string{strconv.Itoa(f.Len())}
	}
	w.WriteHeader(status)
}

// httpStatus maps a refusal to an HTTP status (2026-07-28
// basic/transports/streamable-http, Protocol Version Header and Server
// Validation; 2025-11-25 basic/transports, Session Management).
func httpStatus(r mcp.Refusal) int {
	switch r {
	case mcp.Malformed:
		return http.StatusBadRequest
	case mcp.TooLarge:
		return http.StatusRequestEntityTooLarge
	case mcp.UnknownMethod, mcp.UnknownSession:
		return http.StatusNotFound
	case mcp.Forbidden:
		return http.StatusForbidden
	case mcp.Unavailable:
		return http.StatusServiceUnavailable
	}
	return http.StatusOK
}
