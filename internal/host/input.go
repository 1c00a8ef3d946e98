package host

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/internal/language/grant"
	"github.com/mcpd/mcpd/scripting"
)

// InputPolicy says what a script may request from the client.
type InputPolicy struct {
	// Grant is nil if the script may request nothing.
	Grant  *grant.Ask
	Client call.Capabilities
	// Round counts the suspensions of the call so far.
	Round int
	// InNestedCall means that another call waits for this one, so this one cannot wait for the
	// client.
	InNestedCall bool
	// InDryRun means that the call is planned by code; it ends when it requests input.
	InDryRun bool
}

// The limits that apply if the grant sets none.
const (
	defaultRounds = 10
	defaultTokens = 4096
)

// inputParams are the parameters that decide whether a request may be sent.
type inputParams struct {
	Mode      string
	URL, ID   *string
	Schema    json.RawMessage
	MaxTokens int
	// Tools reports whether tools, or a tool choice, are sent to the model.
	Tools bool
}

// UnmarshalJSON matches member names case-sensitively, as clients do: otherwise a member in
// another case would be checked instead of the one that the client reads.
func (p *inputParams) UnmarshalJSON(data []byte) error {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(data, &members); err != nil {
		return err
	}
	p.Tools = members["tools"] != nil || members["toolChoice"] != nil
	for name, to := range map[string]any{"mode": &p.Mode, "url": &p.URL, "elicitationId": &p.ID, "requestedSchema": &p.Schema, "maxTokens": &p.MaxTokens} {
		if value := members[name]; value != nil {
			if err := json.Unmarshal(value, to); err != nil {
				return err
			}
		}
	}
	return nil
}

// requestInput checks input requests of the script. If they are allowed it returns
// [scripting.ErrSuspended], and the call continues in another execution.
func (h *RunHost) requestInput(payload []byte) error {
	var p struct{ Requests []call.AskRequest }
	if err := json.Unmarshal(payload, &p); err != nil {
		return &scripting.HostError{Code: scripting.Invalid, Message: "the input request cannot be decoded"}
	}
	if h.InputPolicy.Grant == nil && len(p.Requests) == 0 {
		return errNoClient()
	}
	if maxRounds := h.maxRounds(p.Requests); h.InputPolicy.Round >= maxRounds {
		return &scripting.HostError{Code: scripting.Denied, Message: fmt.Sprintf("the call has sent %d input requests, the maximum of its grant", maxRounds)}
	}
	if shown := h.Secrets.RedactBytes(payload); !bytes.Equal(shown, payload) {
		return &scripting.HostError{Code: scripting.Denied, Message: "the input request contains the value of a secret; remove it"}
	}
	for _, r := range p.Requests {
		var params inputParams
		if err := json.Unmarshal(r.Params, &params); err != nil {
			return &scripting.HostError{Code: scripting.Invalid, Message: "the input request cannot be decoded"}
		}
		if h.isConsentRequest(r.Method, r.Params) {
			if err := h.checkConsent(params); err != nil {
				return err
			}
			continue
		}
		if h.InputPolicy.Grant == nil {
			return errNoClient()
		}
		if err := h.checkInputRequest(r.Method, params); err != nil {
			return err
		}
	}
	return scripting.ErrSuspended
}

// maxRounds returns how often the call may request input, including these requests. The grant
// does not limit consent requests of the server itself.
func (h *RunHost) maxRounds(asked []call.AskRequest) int {
	rounds := defaultRounds
	if h.InputPolicy.Grant != nil && h.InputPolicy.Grant.MaxRounds > 0 {
		rounds = h.InputPolicy.Grant.MaxRounds
	}
	others := func(r call.AskRequest) bool { return !h.isConsentRequest(r.Method, r.Params) }
	if len(asked) > 0 && !slices.ContainsFunc(asked, others) {
		return max(rounds, defaultRounds)
	}
	return rounds
}

// checkConsent checks a consent request of the server itself.
func (h *RunHost) checkConsent(params inputParams) error {
	switch {
	case h.InputPolicy.InNestedCall:
		return errNested("the user authorizes the server in a direct call")
	case params.Mode == "url":
		return requireCapability(true, h.InputPolicy.Client.URL, "elicitation", "url")
	}
	return requireCapability(true, h.InputPolicy.Client.Form, "elicitation")
}

// errNested refuses an input request in a nested call.
func errNested(instead string) error {
	return &scripting.HostError{
		Code: scripting.Capability, Message: "a tool that another tool calls cannot ask the client; " + instead, Details: []byte(`{"requiredCapabilities":{}}`),
	}
}

func errNoClient() error {
	return &scripting.HostError{Code: scripting.NotGranted, Message: "input requests are not granted"}
}

func (h *RunHost) checkInputRequest(method string, params inputParams) error {
	granted, can := h.InputPolicy.Grant, h.InputPolicy.Client
	if h.InputPolicy.InNestedCall {
		return errNested("ask in the tool that calls it")
	}
	switch method {
	case elicitation:
		return h.checkElicit(params)
	case "sampling/createMessage":
		limit := cmp.Or(granted.MaxTokens, defaultTokens)
		if params.MaxTokens > limit {
			return &scripting.HostError{
				Code: scripting.TooLarge, Message: fmt.Sprintf("maxTokens, 1000 by default, is more than the %d that the grant allows", limit),
			}
		}
		if params.Tools {
			return requireCapability(granted.Sample, can.SampleTools, "sampling", "tools")
		}
		return requireCapability(granted.Sample, can.Sample, "sampling")
	case "roots/list":
		return requireCapability(granted.Roots, can.Roots, "roots")
	}
	return &scripting.HostError{Code: scripting.Invalid, Message: "no client supports the input request " + method}
}

// checkElicit checks a request to the user, in form or URL mode. It rejects a mix of both: the
// client could show the part that was not checked.
func (h *RunHost) checkElicit(params inputParams) error {
	granted, can := h.InputPolicy.Grant, h.InputPolicy.Client
	invalid := func(message string) error { return &scripting.HostError{Code: scripting.Invalid, Message: message} }
	switch params.Mode {
	case "", "form":
		if params.URL != nil || params.ID != nil {
			return invalid("a form cannot have a url; use the mode url")
		}
		return requireCapability(granted.Elicit, can.Form, "elicitation")
	case "url":
		switch {
		case params.URL == nil || params.Schema != nil:
			return invalid("the mode url needs a url, and no requestedSchema")
		case h.tokens != nil && h.tokens.IsOwnURL(*params.URL):
			return &scripting.HostError{Code: scripting.Denied, Message: "only the server can send users to this page, when a request needs a user token"}
		}
		return requireCapability(granted.Elicit, can.URL, "elicitation", "url")
	}
	return invalid("the mode of an elicitation must be form or url")
}

// requireCapability returns an error if the request is not granted, or if the client lacks the
// capability at the path.
func requireCapability(granted, possible bool, capability ...string) error {
	switch {
	case !granted:
		return &scripting.HostError{Code: scripting.NotGranted, Message: "this input request is not granted"}
	case !possible:
		required := "{}"
		for _, name := range slices.Backward(capability) {
			required = fmt.Sprintf(`{%q:%s}`, name, required)
		}
		return &scripting.HostError{
			Code: scripting.Capability, Message: "the client does not support this: it lacks the capability " + strings.Join(capability, "."),
			Details: []byte(`{"requiredCapabilities":` + required + `}`),
		}
	}
	return nil
}
