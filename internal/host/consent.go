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

// userOf returns text that no other user has than the one whose tokens a caller may
// use: whom authentication has proved, by whatever credential; "" for everybody else.
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

// visitor returns for whom a request of the run is made. Who comes in by stdio, or
// types a command, sits at this machine; who comes by HTTP may not, also by a socket.
func (h *RunHost) oauthCaller(asked bool) oauth.Caller {
	p, from := h.Caller.Principal, h.Caller.Source.Listener
	return oauth.Caller{
		User: h.userKey(), DisplayName: displayPrincipal(p), Prompted: asked,
		SupportsForms: h.InputPolicy.Client.Form || h.InputPolicy.InNestedCall, // which is refused for what it is, when it asks
		SameMachine:   p.Kind == identity.KindLocal && (from == "stdio" || from == "local"),
	}
}

// shownLength bounds what people are shown of an id, in characters.
const maxDisplayID = 200

// shownUser names a principal to people, in one line.
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

// quoted returns text in which no sign is hidden, turns others around, or looks like
// another one.
func quoteASCII(text string) string {
	if runes := []rune(text); len(runes) > maxDisplayID {
		text = string(runes[:maxDisplayID]) + "..."
	}
	return strconv.QuoteToASCII(text)
}

// consents reports whether a question is nothing but one that this server itself
// has for its user, so that it may have a token: that needs no grant, as a request
// which is granted cannot be made without it. A test asks nobody, and its caller may
// be anyone.
func (h *RunHost) isConsentRequest(method string, params json.RawMessage) bool {
	return h.Mocks == nil && h.IsConsentRequest(h.Caller.Principal, call.AskRequest{Method: method, Params: params})
}

// elicitation is the method by which users are asked.
const elicitation = "elicitation/create"

// Poses reports whether a request is a question that this server itself has for the
// user who a principal is.
func (b Brokers) IsConsentRequest(p identity.Principal, r call.AskRequest) bool {
	return r.Method == elicitation && b.tokens != nil && b.tokens.IsPrompt(principalKey(p), r.Params)
}

// Answered takes what the client of a caller answered to requests: answers to the
// questions of this server itself. It must be told of each answer once. Refused are
// the keys that the client answered with an error. Requests of one call that need the
// same token pose the same question: who accepts one of those has accepted it.
func (b Brokers) HandleConsentResponses(p identity.Principal, requests []call.AskRequest, responses map[string]json.RawMessage, refused map[string]call.RPCError) {
	user := principalKey(p)
	if b.tokens == nil || user == "" {
		return
	}
	answers := map[string]oauth.PromptAnswer{} // by the parameters of their questions
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

// answerIn reads an answer. Who did not accept it, to the letter, has refused.
func parseConsentResponse(response json.RawMessage, refused bool) oauth.PromptAnswer {
	// A struct would take a member of another case for the one that was checked.
	var members, content map[string]json.RawMessage
	if refused || json.Unmarshal(response, &members) != nil || string(members["action"]) != `"accept"` {
		return oauth.PromptAnswer{}
	}
	a := oauth.PromptAnswer{Accepted: true}
	if json.Unmarshal(members["content"], &content) == nil {
		_ = json.Unmarshal(content["code"], &a.Code) // what is no text is no code
	}
	return a
}

// Returns has users who allowed a client to have a token come back by a front (see
// [oauth.Issuer.Returns]).
func (b Brokers) OAuthCallbacks() func(*http.Request) http.Handler { return b.tokens.CallbackHandler() }

// forRequestsOnly keeps operations from asking users that do not go on when those
// have answered: tokens of users belong into requests.
func onlyForHTTP(op string, err error) error {
	var refused *scripting.HostError
	if op == "http.request" || !errors.As(err, &refused) || refused.Code != scripting.Consent {
		return err
	}
	return &scripting.HostError{Code: scripting.Denied, Message: "a token of a user goes into the headers of requests alone"}
}
