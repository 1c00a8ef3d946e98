package overlay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/internal/base/safetext"
	"github.com/mcpd/mcpd/internal/federation/upstream"
	"github.com/mcpd/mcpd/scripting"
)

// kept is what a leg leaves behind that has asked: Handle is that of a call which goes on
// at its server, and State what a server that has ended it wants back. Keys are those of
// the server by ours, and Methods what was asked, by our keys.
type kept struct {
	Handle  string            `json:"handle,omitempty"`
	State   string            `json:"state,omitempty"`
	Keys    map[string]string `json:"keys"`
	Methods map[string]string `json:"methods"`
}

// errPlanned is why a call ends that asks while code plans it.
var errPlanned = errors.New("a plan asks nobody")

// maxState bounds what a server has kept for it, in bytes.
const maxState = 256 << 10

// can are the capabilities of the client that the server may make use of, as MCP names
// them; nil for none.
func (l *leg) can() json.RawMessage {
	asking := &l.invocation.Host.Asking
	if asking.Grant == nil || asking.Nested {
		return nil
	}
	can, none := map[string]any{}, map[string]any{}
	if asking.Grant.Elicit && (asking.Can.Form || asking.Can.URL) {
		ways := map[string]any{}
		if asking.Can.Form {
			ways["form"] = none
		}
		if asking.Can.URL {
			ways["url"] = none
		}
		can["elicitation"] = ways
	}
	if asking.Grant.Sample && asking.Can.Sample {
		ways := map[string]any{}
		if asking.Can.SampleTools {
			ways["tools"] = none
		}
		can["sampling"] = ways
	}
	if asking.Grant.Roots && asking.Can.Roots {
		can["roots"] = none
	}
	// Plain data always encodes.
	encoded, _ := json.Marshal(can)
	return encoded
}

// asked has the client be asked what the server wants to know. It reports true where the
// call goes on without: what may not be asked is refused.
func (l *leg) asked(ctx context.Context, c *upstream.Call, reply upstream.Reply) (scripting.Outcome, bool) {
	waits := reply.Waits
	k := kept{State: reply.State, Keys: map[string]string{}, Methods: map[string]string{}}
	var requests []call.AskRequest
	refused := map[string]upstream.Answer{}
	for n, q := range reply.Asked {
		key := l.server + "_" + strconv.Itoa(n+1)
		params, err := l.params(q)
		if err == nil {
			err = l.may(ctx, q.Method, params)
		}
		if err != nil {
			refused[q.Key] = upstream.Answer{Refused: err.Error()}
			continue
		}
		k.Keys[key], k.Methods[key] = q.Key, q.Method
		requests = append(requests, call.AskRequest{Key: key, Method: q.Method, Params: params})
	}
	switch {
	case waits && len(refused) > 0:
		c.Answer(refused)
		return scripting.Outcome{}, true
	case len(refused) > 0:
		first := slices.Sorted(maps.Keys(refused))[0]
		return failed("the server behind this asks what it may not: %s", refused[first].Refused), false
	case len(requests) == 0:
		return failed("the server behind this wants to be asked again, and does not say what for"), false
	case len(k.State) > maxState:
		return failed("the server behind this wants more to be kept for it than %d bytes", maxState), false
	case waits && l.invocation.Host.Asking.Planned:
		c.Cancel(errPlanned)
	case waits:
		if k.Handle = l.fleet.Park(c, l.caller()); k.Handle == "" {
			return failed("the server behind this asks, and too many calls of yours, or of all, wait for an answer; call again later"), false
		}
	}
	// Plain data always encodes.
	state, _ := json.Marshal(k)
	payload, _ := json.Marshal(map[string]any{"requests": requests})
	return l.invocation.Journal.SaveState(state, payload), false
}

// caller is text that stands for the principal of the call alone.
func (l *leg) caller() string {
	p := &l.invocation.Caller.Principal
	return fmt.Sprintf("%q %q %q", p.Kind, p.Issuer, p.ID)
}

// may asks whether the client of the call may be asked this.
func (l *leg) may(ctx context.Context, method string, params json.RawMessage) error {
	// What was read always encodes.
	payload, _ := json.Marshal(map[string]any{"requests": []call.AskRequest{{Key: "q", Method: method, Params: params}}})
	_, err := l.invocation.Host.Do(ctx, 0, "ask", payload)
	var refused *scripting.HostError
	switch {
	case errors.Is(err, scripting.ErrSuspended):
		return nil
	case errors.As(err, &refused):
		return errors.New(refused.Message)
	}
	return errors.New("nobody can be asked")
}

// originKey is the member of _meta that says which server asks.
const originKey = "mcpd/upstream"

// params returns a question as its client gets it: it holds what we know of MCP, and bears
// the name of the server, where a person sees it.
func (l *leg) params(q call.AskRequest) (json.RawMessage, error) {
	var params map[string]any
	var err error
	switch said := given(q.Params); q.Method {
	case "elicitation/create":
		params, err = l.elicitation(said)
	case "sampling/createMessage":
		params, err = l.sampling(said)
	case "roots/list":
		params = map[string]any{}
	default:
		err = fmt.Errorf("nobody can be asked for %.64q", q.Method)
	}
	if err != nil {
		return nil, err
	}
	params["_meta"] = map[string]any{originKey: l.server}
	return json.Marshal(params)
}

// resume goes on with a call whose client has answered.
func (l *leg) resume(ctx context.Context, state, answers []byte) (*upstream.Call, *scripting.Failure, error) {
	var k kept
	var given struct{ Responses map[string]json.RawMessage }
	if err := errors.Join(json.Unmarshal(state, &k), json.Unmarshal(answers, &given)); err != nil {
		return nil, nil, fmt.Errorf("go on with the call of an upstream server: %w", err)
	}
	responses := make(map[string]json.RawMessage, len(k.Keys))
	for ours, theirs := range k.Keys {
		response := given.Responses[ours]
		if k.Handle == "" && k.Methods[ours] != "elicitation/create" && isRefusal(response) {
			return nil, &scripting.Failure{Kind: scripting.AskDenied, Message: "what the server behind this has asked was refused", Details: []byte(`{"reason":"declined"}`)}, nil
		}
		responses[theirs] = response
	}
	if k.Handle == "" {
		return l.send(ctx, l.request(responses, k.State))
	}
	c := l.fleet.Resume(k.Handle, l.listener)
	if c == nil {
		return nil, &scripting.Failure{Kind: scripting.Thrown, Message: "the server behind this does not wait for the answer any more; call again"}, nil
	}
	back := make(map[string]upstream.Answer, len(responses))
	for ours, theirs := range k.Keys {
		if answer := responses[theirs]; k.Methods[ours] != "elicitation/create" && isRefusal(answer) {
			back[theirs] = upstream.Answer{Refused: "the client refuses"}
		} else {
			back[theirs] = upstream.Answer{Result: answer}
		}
	}
	c.Answer(back)
	return c, nil, nil
}

func isRefusal(answer json.RawMessage) bool {
	action := decoded(answer).text("action")
	return action == "decline" || action == "cancel"
}

// decoded returns the members of a JSON object, nil of anything else.
func decoded(raw json.RawMessage) (m members) {
	_ = json.Unmarshal(raw, &m)
	return m
}

// elicitation returns the parameters of a question to a user, of a form or of a page: those
// of the other, and of ways to ask that clients may know and we do not, would be judged by
// nobody.
func (l *leg) elicitation(said members) (map[string]any, error) {
	params := map[string]any{"message": l.words(said.text("message"), safetext.Words)}
	switch mode := said.text("mode"); {
	case mode == "url":
		if !isPage(said.text("url")) {
			return nil, errors.New("users are sent to pages over https alone, by a URL in ASCII")
		}
		params["mode"], params["url"] = mode, said.text("url")
		if id := said.text("elicitationId"); id != "" {
			params["elicitationId"] = id
		}
		return params, nil
	case mode == "form":
		params["mode"] = mode
	case said["mode"] != nil:
		return nil, errors.New("users are asked by a form or by a url")
	}
	form, err := formOf(said["requestedSchema"], l.title)
	params["requestedSchema"] = form
	return params, err
}

// words writes a text of the server behind its label. One that holds a secret stays as it
// is: the question is refused for it, and would not be for half of one.
func (l *leg) words(text string, write func(label, text string, most int) string) string {
	label := "[" + l.server + "] "
	if l.holdsSecret(text) {
		return label + text
	}
	return write(label, text, maxMessage)
}

// maxTitle bounds what a form says of one thing, in bytes.
const maxTitle = 4 << 10

// title writes a text within a form, if it holds no secret.
func (l *leg) title(text string) string {
	if l.holdsSecret(text) {
		return text
	}
	return safetext.Title(text, maxTitle)
}

func (l *leg) holdsSecret(text string) bool {
	return l.invocation.Host.Secrets.Redact(text) != text
}

// isPage reports whether users may be sent to a page. Its address is one that reads the
// same to everybody.
func isPage(text string) bool {
	at, err := url.Parse(text)
	odd := func(r rune) bool { return r <= ' ' || r > '~' || r == '\\' }
	return err == nil && at.Scheme == "https" && at.Host != "" && at.User == nil && !strings.ContainsFunc(text, odd)
}
