package oauth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/mcpd/mcpd/scripting"
)

// hall is a court whose users return to the front.
type hall struct {
	*court
	returns func(*http.Request) http.Handler
}

func newHall(t *testing.T) *hall {
	t.Helper()
	c := (&court{t: t, now: time.Now(), routed: true}).open()
	return &hall{c, c.users.broker.CallbackHandler()}
}

// by is a caller over HTTP.
func by(user string, asked bool) Caller {
	return Caller{User: user, DisplayName: "the holder of " + user, SupportsForms: true, Prompted: asked}
}

// token returns the token of a user, or the prompt.
func (h *hall) token(user string, asked bool) (token, question string, err error) {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(h.t.Context(), requestTimeout)
	defer cancel()
	token, err = h.users.Token(WithCaller(ctx, by(user, asked)))
	var refused *scripting.HostError
	if errors.As(err, &refused) && refused.Code == scripting.Consent {
		return token, string(refused.Details), err
	}
	return token, "", err
}

// page returns the page in the prompt of a user.
func (h *hall) page(user string) *url.URL {
	h.t.Helper()
	_, question, err := h.token(user, false)
	address := regexp.MustCompile(`"url":"([^"]*)"`).FindStringSubmatch(question)
	if address == nil {
		h.t.Fatalf("%s is asked %q: %v", user, question, err)
	}
	page, err := url.Parse(strings.ReplaceAll(address[1], `\u0026`, "&"))
	if err != nil {
		h.t.Fatal(err)
	}
	return page
}

// visit is a browser that requests the front.
func (h *hall) visit(method, target, host string) string {
	h.t.Helper()
	r := httptest.NewRequestWithContext(h.t.Context(), method, target, nil)
	r.Host = host
	page := h.returns(r)
	if page == nil {
		return "nothing"
	}
	w := httptest.NewRecorder()
	page.ServeHTTP(w, r)
	if w.Header().Get("Cache-Control") != "no-store" || w.Header().Get("Referrer-Policy") != "no-referrer" || w.Header().Get("X-Content-Type-Options") != "nosniff" ||
		w.Header().Get("Content-Security-Policy") != "default-src 'none'; frame-ancestors 'none'" || w.Header().Get("Content-Type") != "text/plain; charset=utf-8" {
		h.t.Errorf("the page has the headers %v", w.Header())
	}
	return fmt.Sprint(w.Code, " ", w.Body.String())
}

// back returns a user who gave consent, and returns the displayed code.
func (h *hall) back(page *url.URL) (code, shown string) {
	h.t.Helper()
	shown = h.visit("GET", "/oauth/crm?"+allow(page).Encode(), "mcp.example.com")
	found := regexp.MustCompile(`(?m)^ {4}([A-Z2-7]{4}-[A-Z2-7]{4})$`).FindStringSubmatch(shown)
	if found == nil {
		h.t.Fatalf("the page shows no code:\n%s", shown)
	}
	return found[1], shown
}

// types answers the current prompt of a user.
func (h *hall) types(user, code string) {
	h.t.Helper()
	_, question, err := h.token(user, true)
	if !strings.Contains(question, `"requestedSchema"`) {
		h.t.Fatalf("%s is asked %q: %v", user, question, err)
	}
	h.users.broker.HandleAnswer(user, []byte(question), PromptAnswer{Accepted: true, Code: code})
}

func (h *hall) wantToken(user, want string) {
	h.t.Helper()
	if token, _, err := h.token(user, true); token != want {
		h.t.Errorf("%s has %q and %v, want %q", user, token, err, want)
	}
}

// wantKept checks the number of tokens in the vault.
func (h *hall) wantKept(want int) {
	h.t.Helper()
	h.vault.mu.Lock()
	defer h.vault.mu.Unlock()
	if len(h.vault.kept) != want {
		h.t.Errorf("tokens of %d users are stored, want %d", len(h.vault.kept), want)
	}
}

func TestConfirmCode(t *testing.T) {
	h := newHall(t)
	ada, bob := h.page("ada"), h.page("bob")
	if again := h.page("ada"); again.String() != ada.String() {
		t.Error("a second call sends the user somewhere else")
	}
	code, shown := h.back(ada)
	for _, want := range []string{"200 login.example.com lets the server mcp.example.com", `"mcpd"`, "    the holder of ada\n", "If another person sent you the link"} {
		if !strings.Contains(shown, want) {
			t.Errorf("the page lacks %q:\n%s", want, shown)
		}
	}
	h.wantKept(0)
	h.types("ada", " "+strings.ToLower(strings.ReplaceAll(code, "-", ""))) // as users type it
	h.wantToken("ada", "access-1")
	h.wantKept(1)
	if token, question, _ := h.token("bob", false); token != "" || !strings.Contains(question, `"mode":"url"`) {
		t.Errorf("bob's token is %q, prompt %q", token, question)
	}
	code, _ = h.back(bob)
	h.types("bob", code)
	h.wantToken("bob", "access-2")
	h.wantToken("ada", "access-1")
}

// The victim gave consent, and the sender of the link has no code.
func TestConfirmCode_forwardedLink(t *testing.T) {
	h := newHall(t)
	h.back(h.page("mallory"))
	for _, code := range []string{"AAAA-AAAA", "", "no code at all"} {
		h.types("mallory", code)
	}
	if token, question, err := h.token("mallory", true); token != "" || question != "" || !strings.Contains(fmt.Sprint(err), "wrong three times") {
		t.Errorf("after three attempts: %q, %q, %v", token, question, err)
	}
	h.wantKept(0)
	if _, question, _ := h.token("mallory", false); !strings.Contains(question, `"mode":"url"`) {
		t.Errorf("the new prompt is %q", question)
	}
}

func TestConfirmCode_otherUser(t *testing.T) {
	h := newHall(t)
	ada, _ := h.back(h.page("ada"))
	bob, _ := h.back(h.page("bob"))
	_, question, _ := h.token("ada", true)
	h.types("ada", bob)
	h.types("bob", ada)
	h.wantKept(0)
	// No other user answers for ada, and her code answers no other prompt.
	h.users.broker.HandleAnswer("eve", []byte(question), PromptAnswer{Accepted: true, Code: ada})
	h.users.broker.HandleAnswer("", []byte(question), PromptAnswer{Accepted: true, Code: ada})
	h.users.broker.HandleAnswer("ada", []byte(`{"message":"x"}`), PromptAnswer{Accepted: true, Code: ada})
	h.wantKept(0)
	// The prompt from before the first wrong code still counts, from a concurrent call.
	h.users.broker.HandleAnswer("ada", []byte(question), PromptAnswer{Accepted: true, Code: ada})
	h.wantToken("ada", "access-1")
	h.wantKept(1)
}

func TestConfirmCode_declined(t *testing.T) {
	h := newHall(t)
	code, _ := h.back(h.page("ada"))
	_, question, _ := h.token("ada", true)
	h.users.broker.HandleAnswer("ada", []byte(question), PromptAnswer{})
	h.users.broker.HandleAnswer("ada", []byte(question), PromptAnswer{Accepted: true, Code: code})
	if token, _, err := h.token("ada", true); token != "" || !strings.Contains(fmt.Sprint(err), "the user denied access") {
		t.Errorf("got %q, %v", token, err)
	}
	page := h.page("ada")
	_, question, _ = h.token("ada", false)
	h.users.broker.HandleAnswer("ada", []byte(question), PromptAnswer{})
	if got := h.visit("GET", "/oauth/crm?"+allow(page).Encode(), "mcp.example.com"); got != "400 "+pageUnknown {
		t.Errorf("a user who declined the page can still return: %s", got)
	}
	h.wantKept(0)
}

func TestConfirmCode_timeout(t *testing.T) {
	h := newHall(t)
	code, _ := h.back(h.page("ada"))
	_, question, _ := h.token("ada", true)
	h.pass(authorizationTimeout)
	h.users.cleanUp()
	if n := len(h.users.authorizations); n != 0 {
		t.Errorf("%d visits are left", n)
	}
	h.users.broker.HandleAnswer("ada", []byte(question), PromptAnswer{Accepted: true, Code: code})
	h.wantKept(0)
}

func TestCallbackHandler_otherRequests(t *testing.T) {
	h := newHall(t)
	page := h.page("ada")
	query := "?" + allow(page).Encode()
	for _, test := range []struct{ method, target, host, want string }{
		{"POST", "/oauth/crm" + query, "mcp.example.com", "nothing"}, {"HEAD", "/oauth/crm" + query, "mcp.example.com", "nothing"},
		{"GET", "/oauth/crm" + query, "evil.example.com", "nothing"}, {"GET", "/oauth/crm" + query, "evil.example.com:443", "nothing"},
		{"GET", "/oauth/crm" + query, "mcp.example.com:x", "nothing"}, {"GET", "/oauth/crm" + query, "mcp.example.com.", "nothing"},
		{"GET", "/oauth/crm/" + query, "mcp.example.com", "nothing"}, {"GET", "/oauth/%63rm" + query, "mcp.example.com", "nothing"},
		{"GET", "/oauth/" + query, "mcp.example.com", "nothing"}, {"GET", "/mcp" + query, "mcp.example.com", "nothing"},
		{"GET", "/oauth/crm", "mcp.example.com", "400 " + pageUnknown},
		{"GET", "/oauth/crm?code=good&state=" + strings.Repeat("A", 43), "mcp.example.com", "400 " + pageUnknown},
	} {
		if got := h.visit(test.method, test.target, test.host); got != test.want {
			t.Errorf("%s %s of %s: %s", test.method, test.target, test.host, got)
		}
	}
	if got := h.visit("GET", "/oauth/crm"+query, "MCP.example.com"); !strings.HasPrefix(got, "200 ") {
		t.Errorf("the visit is over: %s", got)
	}
	if got := h.visit("GET", "/oauth/crm"+query, "mcp.example.com"); got != "400 "+pageUnknown {
		t.Errorf("a state is taken twice: %s", got)
	}
	h.users.broker.KeepOnly(nil)
	if got := h.visit("GET", "/oauth/crm"+query, "mcp.example.com"); got != "nothing" {
		t.Errorf("a removed client still serves callbacks: %s", got)
	}
}

func TestMatchesRedirect_port(t *testing.T) {
	for _, test := range []struct {
		redirect, host string
		want           bool
	}{
		{"https://h.example/oauth/x", "h.example", true}, {"https://h.example/oauth/x", "h.example:443", true}, {"https://h.example/oauth/x", "h.example:8080", true},
		{"https://h.example:443/oauth/x", "H.example", true}, {"https://[::1]/oauth/x", "[::1]:443", true},
		{"https://h.example:8443/oauth/x", "h.example:8443", true}, {"https://h.example:8443/oauth/x", "h.example", false},
		{"https://h.example:8443/oauth/x", "h.example:443", false}, {"https://h.example/oauth/x", "g.example:443", false}, {"https://h.example/oauth/x", ":443", false},
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/oauth/x", nil)
		r.Host = test.host
		if got := (Client{RedirectURL: test.redirect}).matchesRedirect(r); got != test.want {
			t.Errorf("%s by the name %s: %v", test.redirect, test.host, got)
		}
	}
}

func TestToken_withoutForms(t *testing.T) {
	h := newHall(t)
	for want, who := range map[string]Caller{"the caller is not authenticated": {SupportsForms: true}, "elicitation.form": {User: "ada"}} {
		if _, err := h.users.Token(WithCaller(t.Context(), who)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error of %+v: %v", who, err)
		}
	}
	h.users.broker.hasCallbacks.Store(false)
	if _, _, err := h.token("ada", false); !errors.Is(err, errNoFront) {
		t.Errorf("error without a front: %v", err)
	}
	c := newCourt(t)
	if _, err := c.users.Token(WithCaller(t.Context(), by("ada", false))); !errors.Is(err, errRemoteUser) {
		t.Errorf("error of a caller over HTTP: %v", err)
	}
}

func TestAuthorization_limit(t *testing.T) {
	h := newHall(t)
	for i := range maxAuthorizations {
		h.page(fmt.Sprint("user-", i))
	}
	if _, question, err := h.token("ada", false); question != "" || !errors.Is(err, errTooManyAuthorizations) {
		t.Errorf("one more is asked %q: %v", question, err)
	}
	h.page("user-7") // a user in progress gets the same prompt
	h.pass(authorizationTimeout)
	h.page("ada")
}

func TestUserTokens_concurrentRenewals(t *testing.T) {
	h := newHall(t)
	for _, user := range []string{"ada", "bob"} {
		code, _ := h.back(h.page(user))
		h.types(user, code)
	}
	if shardOf("ada") == shardOf("bob") {
		t.Fatal("both users have the same shard: use other names")
	}
	h.users.renewing[shardOf("ada")] <- struct{}{} // as if her token were being renewed
	h.wantToken("bob", "access-2")
	h.wantToken("ada", "access-1") // still valid
	h.pass(time.Hour - time.Second)
	h.wantToken("ada", "access-1") // for a second
	h.pass(time.Second)
	h.wantToken("bob", "access-3")
	late, cancel := context.WithCancel(WithCaller(t.Context(), by("ada", true)))
	cancel()
	if token, err := h.users.Token(late); !errors.Is(err, context.Canceled) {
		t.Errorf("ada does not wait for her own token: %q, %v", token, err)
	}
	<-h.users.renewing[shardOf("ada")]
	h.wantToken("ada", "access-4")
}
