package host

import (
	"errors"

	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/scripting"
)

// user returns whose tokens the run may use: those of the user of this machine,
// to whom a browser comes back here; "" for everybody else.
func (h *Call) user() string {
	p := h.Caller.Principal
	if p.Kind != identity.KindLocal || p.ID == "" {
		return ""
	}
	return string(p.Kind) + "\x00" + p.Issuer + "\x00" + p.ID
}

// consents reports whether a question is nothing but the page on which its user
// lets this server have a token: that needs no grant, as a request which is
// granted cannot be made without it.
func (h *Call) consents(method string, params askParams) bool {
	return method == "elicitation/create" && params.Mode == "url" && h.tokens != nil && h.tokens.Sends(h.user(), params.URL)
}

// forRequestsOnly keeps operations from asking users that do not go on when those
// have answered: tokens of users belong into requests.
func forRequestsOnly(op string, err error) error {
	var refused *scripting.HostError
	if op == "http.request" || !errors.As(err, &refused) || refused.Code != scripting.Consent {
		return err
	}
	return &scripting.HostError{Code: scripting.Denied, Message: "a token of a user goes into the headers of requests alone"}
}
