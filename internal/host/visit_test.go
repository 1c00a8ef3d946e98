package host

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/grant"
	"github.com/mcpd/mcpd/internal/host/oauth"
	"github.com/mcpd/mcpd/internal/host/secrets"
	"github.com/mcpd/mcpd/internal/state"
	"github.com/mcpd/mcpd/scripting"
)

// inn is a server whose callers over HTTP have tokens of their own.
type inn struct {
	t *testing.T
	Brokers
	returns func(*http.Request) http.Handler
}

// ada is a caller of it.
var ada = identity.Principal{ID: "ada", Kind: identity.KindKey}

func newInn(t *testing.T) *inn {
	t.Helper()
	desk := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"access_token":"the-token-of-ada","token_type":"bearer"}`)
	}))
	t.Cleanup(desk.Close)
	store := state.NewMemory(state.Options{})
	t.Cleanup(func() { store.Close() })
	b := NewBrokers(Options{
		LookupEnv: func(string) (string, bool) { return "", false }, Logger: slog.New(slog.DiscardHandler),
		Open: func() (state.Store, error) { return store, nil },
	})
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	b.Secrets.Set([]secrets.Def{{Name: "crm", OAuth: &oauth.Client{
		AuthorizeURL: "https://login.example.com/authorize", RedirectURL: "https://mcp.example.com/oauth/crm", TokenURL: desk.URL, ID: "mcpd", PrivateNetworks: true,
	}}})
	return &inn{t, b, b.Returns()}
}

// token returns the token of ada, and what she is asked.
func (i *inn) token(asked bool) (token string, question call.AskRequest) {
	token, err := i.Secrets.Resolve(oauth.For(i.t.Context(), oauth.Caller{User: userOf(ada), Form: true, Asked: asked}), "crm")
	if refused, ok := errors.AsType[*scripting.HostError](err); ok {
		question = call.AskRequest{Method: elicitation, Params: refused.Details}
	}
	return token, question
}

// back has ada come back, and returns the code that she is shown.
func (i *inn) back() string {
	i.t.Helper()
	_, question := i.token(false)
	var asked struct{ URL string }
	if err := json.Unmarshal(question.Params, &asked); err != nil {
		i.t.Fatalf("ada is asked %s: %v", question.Params, err)
	}
	page, err := url.Parse(asked.URL)
	if err != nil {
		i.t.Fatal(err)
	}
	r := httptest.NewRequestWithContext(i.t.Context(), http.MethodGet, "/oauth/crm?code=x&state="+page.Query().Get("state"), nil)
	r.Host = "mcp.example.com"
	w := httptest.NewRecorder()
	i.returns(r).ServeHTTP(w, r)
	code := regexp.MustCompile(`(?m)^ {4}([A-Z2-7]{4}-[A-Z2-7]{4})$`).FindStringSubmatch(w.Body.String())
	if code == nil {
		i.t.Fatalf("the page shows no code:\n%s", w.Body.String())
	}
	return code[1]
}

// answer has ada answer one question as often as there are answers, in one leg.
func (i *inn) answer(question call.AskRequest, answers ...string) {
	var requests []call.AskRequest
	responses := map[string]json.RawMessage{}
	for n, answer := range answers {
		question.Key = fmt.Sprint("consent-", n)
		requests = append(requests, question)
		responses[question.Key] = json.RawMessage(answer)
	}
	i.Answered(ada, requests, responses, nil)
}

const decline = `{"action":"decline"}`

func typing(code string) string {
	return fmt.Sprintf(`{"action":"accept","content":{"code":%q}}`, code)
}

// TestQuestionsThatAreEqualAreOne: three requests of one call need the token, and the
// user answers one of three equal forms.
func TestQuestionsThatAreEqualAreOne(t *testing.T) {
	i := newInn(t)
	_, page := i.token(false)
	i.answer(page, decline, `{"action":"accept"}`, decline)
	code := i.back()
	_, form := i.token(true)
	i.answer(form, decline, typing("AAAA-AAAA"), typing("AAAA-AAAA"), typing("AAAA-AAAA"))
	_, again := i.token(true)
	if !strings.Contains(string(again.Params), "tries that are left: 2.") {
		t.Fatalf("after one wrong code ada is asked %s", again.Params)
	}
	i.answer(again, decline, typing(code), decline)
	if token, question := i.token(true); token != "the-token-of-ada" {
		t.Errorf("ada has %q and is asked %s", token, question.Params)
	}
}

// TestATestPosesNoQuestionOfTheServer, as its caller may be anyone.
func TestATestPosesNoQuestionOfTheServer(t *testing.T) {
	i := newInn(t)
	_, page := i.token(false)
	for mocks, want := range map[*Mocks]string{nil: "suspended", NewMocks(nil): scripting.NotGranted} {
		h := &Call{Brokers: i.Brokers, Caller: identity.Caller{Principal: ada}, Asking: Asking{Can: call.Capabilities{URL: true}}, Mocks: mocks}
		payload := fmt.Sprintf(`{"requests":[{"key":"k","method":%q,"params":%s}]}`, page.Method, page.Params)
		if _, err := h.Do(t.Context(), 1, "ask", []byte(payload)); outcomeOf(err) != want {
			t.Errorf("with the mocks %v it comes to %v, want %s", mocks, err, want)
		}
	}
}

// TestNoBodySendsUsersToThePagesOfTheServer, whose visit somebody else has begun.
func TestNoBodySendsUsersToThePagesOfTheServer(t *testing.T) {
	i := newInn(t)
	_, page := i.token(false)
	bob := &Call{Brokers: i.Brokers, Caller: identity.Caller{Principal: identity.Principal{ID: "bob", Kind: identity.KindKey}}, Asking: Asking{
		Grant: &grant.Ask{Elicit: true}, Can: call.Capabilities{URL: true, Form: true},
	}}
	for params, want := range map[string]string{
		string(page.Params): scripting.Denied,
		`{"mode":"url","message":"m","url":"https://login.example.com/authorize?state=x","URL":"https://pay.example.com/"}`: scripting.Denied,
		`{"mode":"url","Mode":"form","message":"m","url":"https://mcp.example.com/oauth/crm?state=x&code=y"}`:               scripting.Denied,
		`{"mode":"url","message":"m","url":"https://pay.example.com/"}`:                                                     "suspended", `{"message":"m","requestedSchema":{}}`: "suspended",
		`{"mode":1}`: scripting.Invalid, `{"mode":"url","url":[]}`: scripting.Invalid,
	} {
		payload := fmt.Sprintf(`{"requests":[{"key":"k","method":"elicitation/create","params":%s}]}`, params)
		if _, err := bob.Do(t.Context(), 1, "ask", []byte(payload)); outcomeOf(err) != want {
			t.Errorf("%s comes to %v, want %s", params, err, want)
		}
	}
	h := &Call{Brokers: i.Brokers, Caller: identity.Caller{Principal: ada}, Asking: bob.Asking}
	if err := h.ask(fmt.Appendf(nil, `{"requests":[{"method":%q,"params":%s}]}`, page.Method, page.Params)); !errors.Is(err, scripting.ErrSuspended) {
		t.Errorf("the server itself does not send ada there: %v", err)
	}
}
