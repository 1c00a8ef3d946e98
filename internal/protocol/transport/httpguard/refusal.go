package httpguard

import (
	"encoding/json"
	"net/http"
	"strconv"
)

// The error codes of the RFC (section 14) that the gate uses.
const (
	denied  = "POLICY_DENIED"
	invalid = "INVALID_INPUT"
)

// refusal is an answer that is ready to be sent: the error JSON of the RFC, or
// a JSON-RPC error without an id.
type refusal struct {
	status    int
	body, rpc []byte
}

var (
	foreignHost   = refuse(http.StatusForbidden, denied, "the Host header is not a name of this server; the operator allows names with listen { hosts = [...] }")
	foreignOrigin = refuse(http.StatusForbidden, denied, "the Origin header is not allowed; the operator allows origins with listen { origins = [...] }")
	foreignSite   = refuse(http.StatusForbidden, denied, "requests from other web sites are refused")
	encodedBody   = refuse(http.StatusUnsupportedMediaType, invalid, "an encoded body is not accepted: send it without Content-Encoding")
	notJSON       = refuse(http.StatusUnsupportedMediaType, invalid, "Content-Type must be application/json")
)

func refuse(status int, code, message string) refusal {
	text, _ := json.Marshal(message) // a string always encodes
	return refusal{
		status: status, body: []byte(`{"error":"` + code + `","message":` + string(text) + `}`),
		rpc: []byte(`{"jsonrpc":"2.0","error":{"code":-32600,"message":` + string(text) + `}}`),
	}
}

func (no *refusal) write(w http.ResponseWriter, r *http.Request, asRPC bool) {
	body := no.body
	if asRPC {
		body = no.rpc
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(no.status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(body) // a client that is gone needs no answer
	}
}
