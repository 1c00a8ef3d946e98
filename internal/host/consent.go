package host

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/host/oauth"
	"github.com/mcpd/mcpd/scripting"
)

// principalKey returns a key for the tokens of a principal, unique to it. It is "" unless the
// principal is authenticated by some credential.
func principalKey(p identity.Principal) string {
	switch p.Kind {
	case identity.KindLocal, identity.KindKey, identity.KindToken, identity.KindCertificate:
	default:
		return ""
	}
	if p.ID == "" || strings.Contains(p.Issuer, "\x00") {
		return ""
	}
	return string(p.Kind) + "\x00" + p.Issuer + "\x00" + p.ID
}

func (h *RunHost) userKey() string { return principalKey(h.Caller.Principal) }

// oauthCaller returns the caller of a request for package oauth. A caller over stdio or on the
// command line uses this machine. A caller over HTTP may not, even over a socket.
func (h *RunHost) oauthCaller(asked bool) oauth.Caller {
	p, from := h.Caller.Principal, h.Caller.Source.Listener
	return oauth.Caller{
		User: h.userKey(), DisplayName: displayPrincipal(p), Prompted: asked,
		SupportsForms: h.InputPolicy.Client.Form || h.InputPolicy.InNestedCall, // a nested call is refused later, with a better message
		SameMachine:   p.Kind == identity.KindLocal && (from == "stdio" || from == "local"),
	}
}

// maxDisplayID bounds a displayed id, in characters.
const maxDisplayID = 200

// displayPrincipal describes a principal for users, on one line.
func displayPrincipal(p identity.Principal) string {
	kinds := map[identity.Kind]string{
		identity.KindLocal: "the user", identity.KindKey: "the holder of a key of", identity.KindToken: "who signs in as", identity.KindCertificate: "the certificate of",
	}
	shown := kinds[p.Kind] + " " + quoteASCII(p.ID)
	if p.Issuer != "" {
		shown += ", by " + quoteASCII(p.Issuer)
	}
	return shown
}

// quoteASCII quotes text so that no character is hidden, reorders others, or resembles another.
func quoteASCII(text string) string {
	if runes := []rune(text); len(runes) > maxDisplayID {
		text = string(runes[:maxDisplayID]) + "..."
	}
	return strconv.QuoteToASCII(text)
}

// isConsentRequest reports whether a request is a consent request of the server itself. Such a
// request needs no grant: without it, a granted HTTP request could not be made. It is false in
// tests, because their caller may be anyone.
func (h *RunHost) isConsentRequest(method string, params json.RawMessage) bool {
	return h.Mocks == nil && h.IsConsentRequest(h.Caller.Principal, call.AskRequest{Method: method, Params: params})
}

// elicitation is the method for requests to users.
const elicitation = "elicitation/create"

// IsConsentRequest reports whether a request is the server's own consent request to the user of
// a principal.
func (b Brokers) IsConsentRequest(p identity.Principal, r call.AskRequest) bool {
	return r.Method == elicitation && b.tokens != nil && b.tokens.IsPrompt(principalKey(p), r.Params)
}

// HandleConsentResponses handles the responses to consent requests of the server itself. Call
// it once for each response. refused has the keys that the client answered with an error.
// Several requests of one call may need the same token and pose the same question; accepting
// one accepts all.
func (b Brokers) HandleConsentResponses(p identity.Principal, requests []call.AskRequest, responses map[string]json.RawMessage, refused map[string]call.RPCError) {
	user := principalKey(p)
	if b.tokens == nil || user == "" {
		return
	}
	answers := map[string]oauth.PromptAnswer{} // by the parameters of the request
	for _, r := range requests {
		question := string(r.Params)
		if r.Method == elicitation && !answers[question].Accepted {
			_, declined := refused[r.Key]
			answers[question] = parseConsentResponse(responses[r.Key], declined)
		}
	}
	for question, answer := range answers {
		b.tokens.HandleAnswer(user, []byte(question), answer)
	}
}

// parseConsentResponse parses a response. Anything but an exact accept is a refusal.
func parseConsentResponse(response json.RawMessage, refused bool) oauth.PromptAnswer {
	// A struct would match a member in another case.
	var members, content map[string]json.RawMessage
	if refused || json.Unmarshal(response, &members) != nil || string(members["action"]) != `"accept"` {
		return oauth.PromptAnswer{}
	}
	a := oauth.PromptAnswer{Accepted: true}
	if json.Unmarshal(members["content"], &content) == nil {
		_ = json.Unmarshal(content["code"], &a.Code) // a code that is not a string is no code
	}
	return a
}

// OAuthCallbacks returns the handler for OAuth redirects to the front (see
// [oauth.Broker.CallbackHandler]).
func (b Brokers) OAuthCallbacks() func(*http.Request) http.Handler { return b.tokens.CallbackHandler() }

// onlyForHTTP prevents consent requests from other operations, which do not resume after
// consent: user tokens are for HTTP requests only.
func onlyForHTTP(op string, err error) error {
	var refused *scripting.HostError
	if op == "http.request" || !errors.As(err, &refused) || refused.Code != scripting.Consent {
		return err
	}
	return &scripting.HostError{Code: scripting.Denied, Message: "a user token can be used only in headers of requests"}
}
