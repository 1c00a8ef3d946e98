package egress

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"time"

	"github.com/mcpd/mcpd/internal/base/httpheader"
	"github.com/mcpd/mcpd/scripting"
)

// maxMethod bounds the name of a method, in bytes.
const maxMethod = 32

// request is what a script asks for.
type request struct {
	method  string
	to      *address
	host    string // what errors call the host that is asked
	headers []header
	body    []byte
	hasBody bool
	timeout time.Duration // 0 means none
}

// parseRequest reads the payload of an "http.request".
func parseRequest(payload []byte) (*request, error) {
	var in struct {
		Method    string            `json:"method"`
		URL       string            `json:"url"`
		Headers   map[string]string `json:"headers"`
		Body      *string           `json:"body"`
		Body64    *string           `json:"body64"`
		TimeoutMS float64           `json:"timeout_ms"`
	}
	if err := json.Unmarshal(payload, &in); err != nil {
		return nil, invalid("the request is malformed: url and method are strings, headers an object of strings")
	}
	r := &request{method: strings.ToUpper(in.Method)}
	switch {
	case r.method == "":
		r.method = "GET"
	case !httpheader.IsToken(r.method) || len(r.method) > maxMethod:
		return nil, invalid("the method is malformed")
	case r.method == "CONNECT" || r.method == "TRACE":
		return nil, fault(scripting.Denied, "%s is refused to every script", r.method)
	}
	var err error
	if r.to, err = parseAddress(in.URL); err != nil {
		return nil, err
	}
	r.host = r.to.hostport()
	if r.headers, err = parseHeaders(in.Headers); err != nil {
		return nil, err
	}
	const longest = float64(24 * time.Hour / time.Millisecond)
	if in.TimeoutMS < 0 || in.TimeoutMS > longest {
		return nil, invalid("timeout_ms is out of range")
	}
	r.timeout = time.Duration(in.TimeoutMS * float64(time.Millisecond))
	switch {
	case in.Body != nil && in.Body64 != nil:
		return nil, invalid("the request has two bodies")
	case in.Body != nil:
		r.body, r.hasBody = []byte(*in.Body), true
	case in.Body64 != nil:
		if r.body, err = base64.StdEncoding.DecodeString(*in.Body64); err != nil {
			return nil, invalid("body64 is not standard base64")
		}
		r.hasBody = true
	}
	return r, nil
}
