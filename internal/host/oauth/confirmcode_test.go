package oauth

import (
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"
)

// beside returns the users of a second secret at the same server, with another callback path.
func (h *hall) beside(id string) *hall {
	h.t.Helper()
	client := h.users.client
	client.ID, client.RedirectURL = id, "https://mcp.example.com/oauth/"+id
	c := &court{t: h.t, now: h.now, routed: true, desk: h.desk}
	c.users = h.users.broker.Users(id, client, h.users.secret, &c.vault)
	return &hall{c, h.returns}
}

// shows returns to the secret, and returns the displayed code and mark.
func (h *hall) shows(page *url.URL) (code, mark string) {
	h.t.Helper()
	path := strings.TrimPrefix(h.users.client.RedirectURL, "https://mcp.example.com")
	shown := h.visit("GET", path+"?"+allow(page).Encode(), "mcp.example.com")
	found := regexp.MustCompile(`(?ms)with the mark ([A-Z2-7]{4}),.*^ {4}([A-Z2-7]{4}-[A-Z2-7]{4})$`).FindStringSubmatch(shown)
	if found == nil {
		h.t.Fatalf("the page shows no code with a mark:\n%s", shown)
	}
	return found[2], found[1]
}

// The cases are two secrets at one server, and a later authorization.
func TestHandleAnswer_otherAuthorization(t *testing.T) {
	h := newHall(t)
	other := h.beside("mail")
	code, mark := h.shows(h.page("ada"))
	_, otherMark := other.shows(other.page("ada"))
	_, question, _ := h.token("ada", true)
	_, otherQuestion, _ := other.token("ada", true)
	if mark == otherMark || !strings.Contains(question, "with the mark "+mark) || !strings.Contains(otherQuestion, "with the mark "+otherMark) ||
		!strings.Contains(question, `\"mcpd\"`) || !strings.Contains(otherQuestion, `\"mail\"`) {
		t.Errorf("with the marks %s and %s ada is asked\n%s\n%s", mark, otherMark, question, otherQuestion)
	}
	h.users.broker.HandleAnswer("ada", []byte(otherQuestion), PromptAnswer{})
	h.users.broker.HandleAnswer("ada", []byte(question), PromptAnswer{Accepted: true, Code: code})
	h.wantToken("ada", "access-1")
	other.wantKept(0)

	other.token("ada", true)       // the waiting call gets the error
	other.shows(other.page("ada")) // and starts over
	other.users.broker.HandleAnswer("ada", []byte(otherQuestion), PromptAnswer{})
	if _, again, err := other.token("ada", true); !strings.Contains(again, `"requestedSchema"`) || again == otherQuestion {
		t.Errorf("a prompt of the previous authorization has ended the next one: %s, %v", again, err)
	}
}

func TestHandleAnswer_declineAfterReturn(t *testing.T) {
	h := newHall(t)
	page := h.page("ada")
	_, question, _ := h.token("ada", false)
	code, _ := h.back(page)
	h.users.broker.HandleAnswer("ada", []byte(question), PromptAnswer{})
	h.types("ada", code)
	h.wantToken("ada", "access-1")
}

// The time also ends.
func TestConfirmCode_timeoutStart(t *testing.T) {
	h := newHall(t)
	ada, bob := h.page("ada"), h.page("bob")
	h.pass(authorizationTimeout - time.Minute)
	code, _ := h.back(ada)
	late, _ := h.back(bob)
	_, question, _ := h.token("bob", true)
	h.pass(authorizationTimeout - time.Minute)
	h.types("ada", code)
	h.wantToken("ada", "access-1")
	h.pass(time.Minute)
	h.users.cleanUp()
	h.users.broker.HandleAnswer("bob", []byte(question), PromptAnswer{Accepted: true, Code: late})
	h.wantKept(1)
}
