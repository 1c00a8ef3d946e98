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
func userOf(p identity.Principal) string {
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

func (h *Call) user() string { return userOf(h.Caller.Principal) }

// visitor returns for whom a request of the run is made. Who comes in by stdio, or
// types a command, sits at this machine; who comes by HTTP may not, also by a socket.
func (h *Call) visitor(asked bool) oauth.Caller {
	p, from := h.Caller.Principal, h.Caller.Source.Listener
	return oauth.Caller{
		User: h.user(), Shown: shownUser(p), Asked: asked,
		Form: h.Asking.Can.Form || h.Asking.Nested, // which is refused for what it is, when it asks
		Here: p.Kind == identity.KindLocal && (from == "stdio" || from == "local"),
	}
}

// shownLength bounds what people are shown of an id, in characters.
const shownLength = 200

// shownUser names a principal to people, in one line.
func shownUser(p identity.Principal) string {
	kinds := map[identity.Kind]string{
		identity.KindLocal: "the user", identity.KindKey: "the holder of a key of", identity.KindToken: "who signs in as", identity.KindCertificate: "the certificate of",
	}
	shown := kinds[p.Kind] + " " + quoted(p.ID)
	if p.Issuer != "" {
		shown += ", by " + quoted(p.Issuer)
	}
	return shown
}

// quoted returns text in which no sign is hidden, turns others around, or looks like
// another one.
func quoted(text string) string {
	if runes := []rune(text); len(runes) > shownLength {
		text = string(runes[:shownLength]) + "..."
	}
	return strconv.QuoteToASCII(text)
}

// consents reports whether a question is nothing but one that this server itself
// has for its user, so that it may have a token: that needs no grant, as a request
// which is granted cannot be made without it. A test asks nobody, and its caller may
// be anyone.
func (h *Call) consents(method string, params json.RawMessage) bool {
	return h.Mocks == nil && h.Poses(h.Caller.Principal, call.AskRequest{Method: method, Params: params})
}

// elicitation is the method by which users are asked.
const elicitation = "elicitation/create"

// Poses reports whether a request is a question that this server itself has for the
// user who a principal is.
func (b Brokers) Poses(p identity.Principal, r call.AskRequest) bool {
	return r.Method == elicitation && b.tokens != nil && b.tokens.Poses(userOf(p), r.Params)
}

// Answered takes what the client of a caller answered to requests: answers to the
// questions of this server itself. It must be told of each answer once. Refused are
// the keys that the client answered with an error. Requests of one call that need the
// same token pose the same question: who accepts one of those has accepted it.
func (b Brokers) Answered(p identity.Principal, requests []call.AskRequest, responses map[string]json.RawMessage, refused map[string]call.RPCError) {
	user := userOf(p)
	if b.tokens == nil || user == "" {
		return
	}
	answers := map[string]oauth.Answer{} // by the parameters of their questions
	for _, r := range requests {
		question := string(r.Params)
		if r.Method == elicitation && !answers[question].Accepted {
			_, declined := refused[r.Key]
			answers[question] = answerIn(responses[r.Key], declined)
		}
	}
	for question, answer := range answers {
		b.tokens.Answered(user, []byte(question), answer)
	}
}

// answerIn reads an answer. Who did not accept it, to the letter, has refused.
func answerIn(response json.RawMessage, refused bool) oauth.Answer {
	// A struct would take a member of another case for the one that was checked.
	var members, content map[string]json.RawMessage
	if refused || json.Unmarshal(response, &members) != nil || string(members["action"]) != `"accept"` {
		return oauth.Answer{}
	}
	a := oauth.Answer{Accepted: true}
	if json.Unmarshal(members["content"], &content) == nil {
		_ = json.Unmarshal(content["code"], &a.Code) // what is no text is no code
	}
	return a
}

// Returns has users who allowed a client to have a token come back by a front (see
// [oauth.Issuer.Returns]).
func (b Brokers) Returns() func(*http.Request) http.Handler { return b.tokens.Returns() }

// forRequestsOnly keeps operations from asking users that do not go on when those
// have answered: tokens of users belong into requests.
func forRequestsOnly(op string, err error) error {
	var refused *scripting.HostError
	if op == "http.request" || !errors.As(err, &refused) || refused.Code != scripting.Consent {
		return err
	}
	return &scripting.HostError{Code: scripting.Denied, Message: "a token of a user goes into the headers of requests alone"}
}
