package oauth

import (
	"bytes"
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/mcpd/mcpd/scripting"
)

// tries is how often a user may type the code of a page.
const maxCodeAttempts = 3

var errCode = errors.New("the code was wrong three times; nothing was joined, and the next call starts over")

// newCode returns 40 random bits as people type them.
func newCode() string {
	text := rand.Text()
	return text[:4] + "-" + text[4:8]
}

// typed returns a code as it was shown, however it was typed.
func normalizeCode(code string) string {
	code = strings.Map(func(r rune) rune {
		if r == '-' || r == ' ' {
			return -1
		}
		return r
	}, strings.ToUpper(code))
	if len(code) != 8 {
		return ""
	}
	return code[:4] + "-" + code[4:]
}

// form asks the user for the code that their browser shows beside a mark, with so many
// tries left.
func (c Client) form(mark string, left int) []byte {
	again := ""
	if left < maxCodeAttempts {
		again = fmt.Sprintf("That was not the code; tries that are left: %d. ", left)
	}
	// Plain data always encodes.
	params, _ := json.Marshal(map[string]any{
		"message": fmt.Sprintf("%sType the code that your browser shows beside the mark %s, since %s let the server %s, which it knows as %+q, act for you. "+
			"If you have not been there yourself, or the mark is another one, decline.", again, mark, hostIn(c.AuthorizeURL), hostIn(c.RedirectURL), c.ID),
		"requestedSchema": map[string]any{
			"type": "object", "required": []string{"code"},
			"properties": map[string]any{"code": map[string]any{"type": "string", "title": "Code", "description": "Eight letters and digits, as in ABCD-EFGH"}},
		},
	})
	return params
}

// askForCode is the question for the code of a visit.
func (u *UserTokens) codePrompt(v *authorization) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	return &scripting.HostError{Code: scripting.Consent, Message: "the user has not typed the code yet", Details: v.forms[max(v.attemptsLeft, 1)-1]}
}

// Poses reports whether parameters of elicitation/create are, to the byte, a
// question that one of the clients has for a user: the page that they are to open,
// or the form for the code that it showed them.
func (i *Broker) IsPrompt(user string, params []byte) bool {
	for _, u := range i.clients() {
		u.mu.Lock()
		v, _ := u.findPrompt(user, params)
		u.mu.Unlock()
		if v != nil {
			return true
		}
	}
	return false
}

// asked returns the visit of a user to which a question belongs, and whether that
// is for the code; nil when there is none; mu is held.
func (u *UserTokens) findPrompt(user string, params []byte) (v *authorization, code bool) {
	if user == "" {
		return nil, false
	}
	for _, v := range u.authorizations {
		if v.caller.User != user || v.stage == stageDone {
			continue
		}
		if bytes.Equal(params, v.page) {
			return v, false
		}
		if v.stage == stageCodeShown && slices.ContainsFunc(v.forms[:], func(form []byte) bool { return bytes.Equal(params, form) }) {
			return v, true
		}
	}
	return nil, false
}

// Answer is what a user answered to a question of a client.
type PromptAnswer struct {
	// Accepted says that they did not refuse, and Code is what they typed then.
	Accepted bool
	Code     string
}

// Answered takes the answer of a user to a question, if [Issuer.Poses] that. The
// right code joins the token to the user who was asked for it, and to nobody else;
// a refusal drops it, and so does the third wrong code. Who refuses to open the page
// when somebody has come back from it refuses nothing.
func (i *Broker) HandleAnswer(user string, params []byte, a PromptAnswer) {
	for _, u := range i.clients() {
		u.handleAnswer(user, params, a)
	}
}

func (u *UserTokens) handleAnswer(user string, params []byte, a PromptAnswer) {
	u.mu.Lock()
	v, code := u.findPrompt(user, params)
	if v == nil || !u.client.HasRemoteCallback() || !code && (a.Accepted || v.stage != stageAtProvider) {
		u.mu.Unlock()
		return
	}
	got, right := v.token, a.Accepted && v.checkCode(a.Code)
	switch v.attemptsLeft--; {
	case right:
		u.advance(v, stageStoring)
	case !a.Accepted:
		u.end(v, errNotAllowed)
	case v.attemptsLeft == 0:
		u.end(v, errCode)
	}
	u.mu.Unlock()
	if !right {
		return
	}
	err := u.storeFirst(v, got)
	u.mu.Lock()
	defer u.mu.Unlock()
	if v.stage == stageStoring {
		u.end(v, err)
	}
}

// proved reports whether a code is the one that the page has shown.
func (v *authorization) checkCode(code string) bool {
	return v.code != "" && subtle.ConstantTimeCompare([]byte(normalizeCode(code)), []byte(v.code)) == 1
}
