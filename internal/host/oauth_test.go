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

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/base/state"
	"github.com/mcpd/mcpd/internal/host/oauth"
	"github.com/mcpd/mcpd/internal/host/secrets"
	"github.com/mcpd/mcpd/internal/language/grant"
	"github.com/mcpd/mcpd/scripting"
)

// inn is a server whose HTTP callers have their own tokens.
type inn struct {
	t *testing.T
	Brokers
	returns func(*http.Request) http.Handler
	// written are the audit events, and unwritten is the error of audit writes.
	written   []string
	unwritten error
}

// ada is a caller.
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
	i := &inn{t: t}
	b := NewBrokers(Options{
		LookupEnv: func(string) (string, bool) { return "", false }, Logger: slog.New(slog.DiscardHandler),
		OpenStore: func() (state.Store, error) { return store, nil }, Audit: i.write,
	})
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	b.Secrets.Set([]secrets.Definition{{Name: "crm", OAuth: &oauth.Client{
		AuthorizeURL: "https://login.example.com/authorize", RedirectURL: "https://mcp.example.com/oauth/crm", TokenURL: desk.URL, ID: "mcpd", PrivateNetworks: true,
	}}})
	i.Brokers, i.returns = b, b.OAuthCallbacks()
	return i
}

// write records an event, and the number of stored tokens at that time.
func (i *inn) write(event string, attributes map[string]string) error {
	kept, err := i.UserTokens()
	if err != nil {
		i.t.Error(err)
	}
	i.written = append(i.written, fmt.Sprint(event, " ", attributes, " ", len(kept)))
	return i.unwritten
}

// token returns the token of ada, and her prompt.
func (i *inn) token(asked bool) (token string, question call.AskRequest) {
	token, err := i.Secrets.Resolve(oauth.WithCaller(i.t.Context(), oauth.Caller{User: principalKey(ada), SupportsForms: true, Prompted: asked}), "crm")
	if refused, ok := errors.AsType[*scripting.HostError](err); ok {
		question = call.AskRequest{Method: elicitation, Params: refused.Details}
	}
	return token, question
}

// back returns ada from the authorization server, and returns the displayed code.
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

// answer answers one prompt several times, in one call.
func (i *inn) answer(question call.AskRequest, answers ...string) {
	var requests []call.AskRequest
	responses := map[string]json.RawMessage{}
	for n, answer := range answers {
		question.Key = fmt.Sprint("consent-", n)
		requests = append(requests, question)
		responses[question.Key] = json.RawMessage(answer)
	}
	i.HandleConsentResponses(ada, requests, responses, nil)
}

const decline = `{"action":"decline"}`

func typing(code string) string {
	return fmt.Sprintf(`{"action":"accept","content":{"code":%q}}`, code)
}

// Three requests of one call need the token, and the user answers one of three equal forms.
func TestHandleConsentResponses_duplicates(t *testing.T) {
	i := newInn(t)
	_, page := i.token(false)
	i.answer(page, decline, `{"action":"accept"}`, decline)
	code := i.back()
	_, form := i.token(true)
	i.answer(form, decline, typing("AAAA-AAAA"), typing("AAAA-AAAA"), typing("AAAA-AAAA"))
	_, again := i.token(true)
	if !strings.Contains(string(again.Params), "Attempts left: 2.") {
		t.Fatalf("after one wrong code ada's prompt is %s", again.Params)
	}
	i.answer(again, decline, typing(code), decline)
	if token, question := i.token(true); token != "the-token-of-ada" {
		t.Errorf("ada's token is %q, prompt %s", token, question.Params)
	}
}

// The event names the user and the secret, and nothing from the network. Without an audit
// record the token is not stored.
func TestAudit_tokenJoined(t *testing.T) {
	const joined = "token.joined map[issuer: kind:key name:crm principal:ada] 0"
	for _, unwritten := range []error{nil, errors.New("the disk is full")} {
		i := newInn(t)
		i.unwritten = unwritten
		code := i.back()
		if len(i.written) > 0 {
			t.Errorf("before the code is entered, the audit log has %q", i.written)
		}
		_, form := i.token(true)
		i.answer(form, typing(code))
		token, _ := i.token(true)
		kept, err := i.UserTokens()
		if diff := cmp.Diff([]string{joined}, i.written); diff != "" || err != nil {
			t.Errorf("%v, written is (-want +got)\n%s", err, diff)
		}
		if used := unwritten == nil; (token != "") != used || (len(kept) == 1) != used {
			t.Errorf("audit error %v: ada's token is %q, %d tokens stored", unwritten, token, len(kept))
		}
	}
}

// The event has a reason.
func TestAudit_tokenLost(t *testing.T) {
	i := newInn(t)
	Options{Audit: i.write}.tokenLost("crm#1", principalKey(identity.Principal{ID: "ada", Kind: identity.KindToken, Issuer: "https://id.example"}), oauth.LossRejected)
	if diff := cmp.Diff([]string{"token.lost map[issuer:https://id.example kind:jwt name:crm principal:ada why:refused] 0"}, i.written); diff != "" {
		t.Errorf("written is (-want +got)\n%s", diff)
	}
}

// The caller of a test may be anyone.
func TestIsConsentRequest_test(t *testing.T) {
	i := newInn(t)
	_, page := i.token(false)
	for mocks, want := range map[*Mocks]string{nil: "suspended", NewMocks(nil): scripting.NotGranted} {
		h := &RunHost{Brokers: i.Brokers, Caller: identity.Caller{Principal: ada}, InputPolicy: InputPolicy{Client: call.Capabilities{URL: true}}, Mocks: mocks}
		payload := fmt.Sprintf(`{"requests":[{"key":"k","method":%q,"params":%s}]}`, page.Method, page.Params)
		if _, err := h.Do(t.Context(), 1, "ask", []byte(payload)); outcomeOf(err) != want {
			t.Errorf("with the mocks %v the result is %v, want %s", mocks, err, want)
		}
	}
}

// The URL could belong to the authorization of another user.
func TestCheckElicit_ownURL(t *testing.T) {
	i := newInn(t)
	_, page := i.token(false)
	bob := &RunHost{Brokers: i.Brokers, Caller: identity.Caller{Principal: identity.Principal{ID: "bob", Kind: identity.KindKey}}, InputPolicy: InputPolicy{
		Grant: &grant.Ask{Elicit: true}, Client: call.Capabilities{URL: true, Form: true},
	}}
	for params, want := range map[string]string{
		string(page.Params): scripting.Denied,
		`{"mode":"url","message":"m","url":"https://login.example.com/authorize?state=x","URL":"https://pay.example.com/"}`: scripting.Denied,
		`{"mode":"url","Mode":"form","message":"m","url":"https://mcp.example.com/oauth/crm?state=x&code=y"}`:               scripting.Denied,
		`{"mode":"url","message":"m","url":"https://pay.example.com/"}`:                                                     "suspended", `{"message":"m","requestedSchema":{}}`: "suspended",
		`{"mode":"URL","message":"m","url":"https://login.example.com/authorize?state=x"}`:                       scripting.Invalid,
		`{"mode":"form","message":"m","requestedSchema":{},"url":"https://login.example.com/authorize?state=x"}`: scripting.Invalid,
		`{"message":"m","requestedSchema":{},"url":"https://login.example.com/authorize?state=x"}`:               scripting.Invalid,
		`{"mode":"url","message":"m","url":"https://pay.example.com/","requestedSchema":{}}`:                     scripting.Invalid,
		`{"message":"m","requestedSchema":{},"elicitationId":"e"}`:                                               scripting.Invalid,
		`{"mode":"url","message":"m"}`: scripting.Invalid,
		`{"mode":1}`:                   scripting.Invalid, `{"mode":"url","url":[]}`: scripting.Invalid,
	} {
		payload := fmt.Sprintf(`{"requests":[{"key":"k","method":"elicitation/create","params":%s}]}`, params)
		if _, err := bob.Do(t.Context(), 1, "ask", []byte(payload)); outcomeOf(err) != want {
			t.Errorf("%s returns %v, want %s", params, err, want)
		}
	}
	h := &RunHost{Brokers: i.Brokers, Caller: identity.Caller{Principal: ada}, InputPolicy: bob.InputPolicy}
	if err := h.requestInput(fmt.Appendf(nil, `{"requests":[{"method":%q,"params":%s}]}`, page.Method, page.Params)); !errors.Is(err, scripting.ErrSuspended) {
		t.Errorf("the server's own prompt is refused: %v", err)
	}
}

func TestCheckInputRequest_samplingTools(t *testing.T) {
	h := &RunHost{Brokers: newInn(t).Brokers, InputPolicy: InputPolicy{Grant: &grant.Ask{Sample: true}, Client: call.Capabilities{Sample: true}}}
	for params, want := range map[string]string{
		`{"messages":[]}`:                 "suspended",
		`{"messages":[],"tools":[]}`:      scripting.Capability,
		`{"messages":[],"toolChoice":{}}`: scripting.Capability,
	} {
		if err := h.requestInput(fmt.Appendf(nil, `{"requests":[{"method":"sampling/createMessage","params":%s}]}`, params)); outcomeOf(err) != want {
			t.Errorf("%s returns %v, want %s", params, err, want)
		}
	}
}
