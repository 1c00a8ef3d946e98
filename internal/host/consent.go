package host

import "github.com/mcpd/mcpd/identity"

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
