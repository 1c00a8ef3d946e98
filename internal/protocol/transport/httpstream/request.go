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

// Judge reports whether the body of a request is plain JSON by its headers.
// False means that the answer was written.
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
		WriteError(w, status, reason)
	}
	return nil, false
}

func unavailable(w http.ResponseWriter, reason string) {
	w.Header().Set("Retry-After", "1")
	WriteError(w, http.StatusServiceUnavailable, reason)
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
	// firstRead is how much memory a body gets before any of it has come.
	initialBuffer = 16 << 10
	// unannounced is how much one gets that does not say how long it is.
	unknownLengthBuffer = 512
)

var errTooLong = errors.New("the body is too long")

// readAll reads a body of which a length was announced, or less than 0.
func readAll(body io.Reader, announced int64, limit int) ([]byte, error) {
	if announced < 0 {
		announced = unknownLengthBuffer
	}
	// There is room for one byte more, so that the end is seen without growing.
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

// Accepted is which of the two forms of an answer a client takes.
type AcceptTypes struct{ JSON, Events bool }

// AcceptOf reads the Accept header (RFC 9110 section 12.5.1). A client that
// sends none takes anything.
func ParseAccept(r *http.Request) AcceptTypes {
	values := r.Header["Accept"]
	if len(values) == 0 {
		return AcceptTypes{JSON: true, Events: true}
	}
	if len(values) == 1 && values[0] == "application/json, text/event-stream" {
		return AcceptTypes{JSON: true, Events: true} // without the work of parsing
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

// refused reports whether the parameters of a media type give it the weight 0.
func hasZeroWeight(parameters string) bool {
	weight, ok := strings.CutPrefix(strings.TrimSpace(parameters), "q=")
	return ok && strings.Trim(weight, "0.") == "" && strings.HasPrefix(weight, "0")
}

// Caller is who sent a request, once it was let in.
type Caller struct {
	Peer mcp.Peer
	// Pass is what the caller goes by from then on.
	Access *authn.Access
	// Client is whom the request and its answer count for.
	Client workqueue.Client
}

// Enter returns who sent the request; false means that the answer was written, and that
// there is nobody.
func Authenticate(w http.ResponseWriter, r *http.Request, door authn.Middleware) (*Caller, bool) {
	principal, source, pass, err := door.Authenticate(r)
	if err != nil {
		writeAuthError(w, r, door, err)
		return nil, false
	}
	client, ok := httpguard.Admit(r, &principal)
	if !ok {
		unavailable(w, httpguard.TooManyInUse)
		return nil, false
	}
	return &Caller{mcp.Peer{Principal: principal, Source: source, Headers: r.Header}, pass, client}, true
}

// Holds reports whether who sent the request may still enter, after a body that may
// have taken long; false means that the answer was written.
func CheckAccess(w http.ResponseWriter, r *http.Request, door authn.Middleware, pass *authn.Access) bool {
	err := pass.Check()
	if err != nil {
		writeAuthError(w, r, door, err)
	}
	return err == nil
}

func writeAuthError(w http.ResponseWriter, r *http.Request, door authn.Middleware, err error) {
	status, message := door.Reject(w.Header(), r, err)
	WriteError(w, status, message)
}

// Refuse answers a request that does not reach the protocol.
func WriteError(w http.ResponseWriter, status int, reason string) {
	_ = writeJSON(w, status, mcp.Refuse(mcp.Malformed, reason).Frame, false)
}

// typeJSON is shared by all answers, and never written to.
var typeJSON = []string{"application/json"}

func writeJSON(w http.ResponseWriter, status int, f mcp.Frame, flushed bool) error {
	writeHead(w, status, f, flushed)
	_, err := f.WriteTo(w)
	return err
}

// writeHead writes the head of a response. The server tells the length of one that it
// keeps back until the handler returns; one that is flushed tells it here.
func writeHead(w http.ResponseWriter, status int, f mcp.Frame, flushed bool) {
	h := w.Header()
	h["Content-Type"] = typeJSON
	if flushed {
		h["Content-Length"] = []string{strconv.Itoa(f.Len())}
	}
	w.WriteHeader(status)
}

// statusOf maps a refusal to HTTP (2026-07-28 basic/transports/streamable-http,
// Protocol Version Header and Server Validation; 2025-11-25 basic/transports,
// Session Management).
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
