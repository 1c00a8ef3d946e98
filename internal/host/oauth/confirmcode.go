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

// maxCodeAttempts is how often a user may enter the code of a page.
const maxCodeAttempts = 3

var errCode = errors.New("the code was wrong three times; the next call starts a new authorization")

// newCode returns a code of 40 random bits that is easy to type.
func newCode() string {
	text := rand.Text()
	return text[:4] + "-" + text[4:8]
}

// normalizeCode returns a typed code in the displayed format, or "".
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

// formInstruction is the beginning of each form.
const formInstruction = "Enter the code that your browser shows with the mark"

// form returns the parameters of the form that asks the user for the code in their browser,
// next to a mark, with the remaining attempts.
func (c Client) form(mark string, left int) []byte {
	again := ""
	if left < maxCodeAttempts {
		again = fmt.Sprintf("Wrong code. Attempts left: %d. ", left)
	}
	// Plain data always encodes.
	params, _ := json.Marshal(map[string]any{
		"message": fmt.Sprintf("%s"+formInstruction+" %s. Then %s lets the server %s, which it knows as %+q, act for you. "+
			"If you did not open that page yourself, or its mark differs, decline.", again, mark, hostIn(c.AuthorizeURL), hostIn(c.RedirectURL), c.ID),
		"requestedSchema": map[string]any{
			"type": "object", "required": []string{"code"},
			"properties": map[string]any{"code": map[string]any{"type": "string", "title": "Code", "description": "Eight letters and digits, as in ABCD-EFGH"}},
		},
	})
	return params
}

// codePrompt returns the prompt for the code of an authorization.
func (u *UserTokens) codePrompt(v *authorization) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	return &scripting.HostError{Code: scripting.Consent, Message: "the user has not entered the code yet", Details: v.forms[max(v.attemptsLeft, 1)-1]}
}

// IsPrompt reports whether parameters of elicitation/create are byte for byte a prompt of one
// of the clients for a user: the page to open, or the form for the code.
func (b *Broker) IsPrompt(user string, params []byte) bool {
	for _, u := range b.clients() {
		u.mu.Lock()
		v, _ := u.findPrompt(user, params)
		u.mu.Unlock()
		if v == nil {
			if all, err := u.syncPrompt(user, params); err == nil && all != nil {
				u.mu.Lock()
				v, _ = u.findPrompt(user, params)
				u.mu.Unlock()
			}
		}
		if v != nil {
			return true
		}
	}
	return false
}

// findPrompt returns the authorization of a prompt, and whether the prompt is for the code. It
// returns nil if there is none. The caller holds mu.
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

// PromptAnswer is the user's answer to a prompt.
type PromptAnswer struct {
	// Accepted means that the user did not decline. Code is what they entered.
	Accepted bool
	Code     string
}

// HandleAnswer handles the user's answer to a prompt, if [Broker.IsPrompt]. The right code
// stores the token for the prompted user and for no other. Declining drops the token, and so
// does the third wrong code. Declining to open the page has no effect once a browser has
// returned.
func (b *Broker) HandleAnswer(user string, params []byte, a PromptAnswer) {
	for _, u := range b.clients() {
		u.handleAnswer(user, params, a)
	}
}

func (u *UserTokens) handleAnswer(user string, params []byte, a PromptAnswer) {
	if all, err := u.syncPrompt(user, params); err != nil || all != nil {
		if err == nil { // otherwise the call asks again, or fails
			u.handleSharedAnswer(all, user, params, a)
		}
		return
	}
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

// checkCode compares a code with the displayed one.
func (a *authorization) checkCode(code string) bool {
	return a.code != "" && subtle.ConstantTimeCompare([]byte(normalizeCode(code)), []byte(a.code)) == 1
}
