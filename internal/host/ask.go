package host

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/internal/grant"
	"github.com/mcpd/mcpd/scripting"
)

// Asking is what a body may ask, and whom.
type Asking struct {
	// Grant is nil when nobody may be asked.
	Grant *grant.Ask
	Can   call.Capabilities
	// Round is how often the call has been suspended.
	Round int
	// Nested says that another call waits for this one, which therefore cannot
	// wait for the client.
	Nested bool
}

// The bounds of asking unless the grant says otherwise.
const (
	defaultRounds = 10
	defaultTokens = 4096
)

// askPayload is that of the operation ask.
type askPayload struct {
	Requests []struct {
		Method string          `json:"method"`
		Params json.RawMessage `json:"params"`
	} `json:"requests"`
}

// askParams are the parameters of requests that decide whether they may be sent.
type askParams struct {
	Mode      string          `json:"mode"`
	URL       string          `json:"url"`
	MaxTokens int             `json:"maxTokens"`
	Tools     json.RawMessage `json:"tools"`
}

// ask lets what the body asks reach the client, in another run of the call.
func (h *Call) ask(payload []byte) error {
	var p askPayload
	if err := json.Unmarshal(payload, &p); err != nil {
		return &scripting.HostError{Code: scripting.Invalid, Message: "what is asked cannot be read"}
	}
	most := 0
	if h.Asking.Grant != nil {
		most = h.Asking.Grant.MaxRounds
	} else if len(p.Requests) == 0 {
		return nobody()
	}
	if most == 0 {
		most = defaultRounds
	}
	if h.Asking.Round >= most {
		return &scripting.HostError{Code: scripting.Denied, Message: fmt.Sprintf("the call has asked %d times, which is all that its grant allows", most)}
	}
	if shown := h.Secrets.RedactBytes(payload); !bytes.Equal(shown, payload) {
		return &scripting.HostError{Code: scripting.Denied, Message: "the question holds the value of a secret; leave it out"}
	}
	for _, r := range p.Requests {
		var params askParams
		if err := json.Unmarshal(r.Params, &params); err != nil {
			return &scripting.HostError{Code: scripting.Invalid, Message: "what is asked cannot be read"}
		}
		if h.consents(r.Method, params) {
			if err := allowed(true, h.Asking.Can.URL, "elicitation", "url"); err != nil {
				return err
			}
			continue
		}
		if h.Asking.Grant == nil {
			return nobody()
		}
		if err := h.mayAsk(r.Method, params); err != nil {
			return err
		}
	}
	return scripting.ErrSuspended
}

func nobody() error {
	return &scripting.HostError{Code: scripting.NotGranted, Message: "nobody may be asked"}
}

// mayAsk judges one request.
func (h *Call) mayAsk(method string, params askParams) error {
	granted, can := h.Asking.Grant, h.Asking.Can
	if h.Asking.Nested {
		return &scripting.HostError{
			Code: scripting.Capability, Message: "a tool that another tool calls cannot ask the client; ask in the tool that calls it", Details: []byte(`{"requiredCapabilities":{}}`),
		}
	}
	switch method {
	case "elicitation/create":
		if params.Mode == "url" {
			return allowed(granted.Elicit, can.URL, "elicitation", "url")
		}
		return allowed(granted.Elicit, can.Form, "elicitation")
	case "sampling/createMessage":
		most := granted.MaxTokens
		if most == 0 {
			most = defaultTokens
		}
		if params.MaxTokens > most {
			return &scripting.HostError{
				Code: scripting.TooLarge, Message: fmt.Sprintf("maxTokens, 1000 where the body does not say, is more than the %d that the grant allows", most),
			}
		}
		if len(params.Tools) > 0 {
			return allowed(granted.Sample, can.SampleTools, "sampling", "tools")
		}
		return allowed(granted.Sample, can.Sample, "sampling")
	case "roots/list":
		return allowed(granted.Roots, can.Roots, "roots")
	}
	return &scripting.HostError{Code: scripting.Invalid, Message: "no client can be asked for " + method}
}

// allowed refuses what is not granted, and what the client cannot answer, which
// lacks the capability at the path then.
func allowed(granted, possible bool, capability ...string) error {
	switch {
	case !granted:
		return &scripting.HostError{Code: scripting.NotGranted, Message: "this may not be asked"}
	case !possible:
		required := "{}"
		for _, name := range slices.Backward(capability) {
			required = fmt.Sprintf(`{%q:%s}`, name, required)
		}
		return &scripting.HostError{
			Code: scripting.Capability, Message: "the client cannot be asked this: it lacks the capability " + strings.Join(capability, "."),
			Details: []byte(`{"requiredCapabilities":` + required + `}`),
		}
	}
	return nil
}
