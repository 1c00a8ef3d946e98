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

// resumeState is the state of a call between an input request and its response. Handle
// identifies a call suspended at its server. State is the state that a server wants back after
// it has ended the call. Keys maps our keys to keys of the server, and Methods our keys to
// methods.
type resumeState struct {
	Handle  string            `json:"handle,omitempty"`
	State   string            `json:"state,omitempty"`
	Keys    map[string]string `json:"keys"`
	Methods map[string]string `json:"methods"`
}

// errDryRun ends a call that requests input during a dry run.
var errDryRun = errors.New("a plan cannot send input requests")

// maxState bounds the state of a server, in bytes.
const maxState = 256 << 10

// clientCapabilities returns the client's capabilities that the server may use, in MCP form, or
// nil.
func (rc *remoteCall) clientCapabilities() json.RawMessage {
	policy := &rc.invocation.Host.InputPolicy
	if policy.Grant == nil || policy.InNestedCall {
		return nil
	}
	capabilities, none := map[string]any{}, map[string]any{}
	if policy.Grant.Elicit && (policy.Client.Form || policy.Client.URL) {
		features := map[string]any{}
		if policy.Client.Form {
			features["form"] = none
		}
		if policy.Client.URL {
			features["url"] = none
		}
		capabilities["elicitation"] = features
	}
	if policy.Grant.Sample && policy.Client.Sample {
		features := map[string]any{}
		if policy.Client.SampleTools {
			features["tools"] = none
		}
		capabilities["sampling"] = features
	}
	if policy.Grant.Roots && policy.Client.Roots {
		capabilities["roots"] = none
	}
	// Plain data always encodes.
	encoded, _ := json.Marshal(capabilities)
	return encoded
}

// relayInputRequests passes input requests of the server to the client. It returns true if the
// call continues because its requests were refused.
func (rc *remoteCall) relayInputRequests(ctx context.Context, c *upstream.Call, reply upstream.Reply) (scripting.Outcome, bool) {
	suspended := reply.Suspended
	k := resumeState{State: reply.State, Keys: map[string]string{}, Methods: map[string]string{}}
	var requests []call.AskRequest
	refused := map[string]upstream.InputResponse{}
	for n, q := range reply.InputRequests {
		key := rc.server + "_" + strconv.Itoa(n+1)
		params, err := rc.clientParams(q)
		if err == nil {
			err = rc.checkPermission(ctx, q.Method, params)
		}
		if err != nil {
			refused[q.Key] = upstream.InputResponse{Refusal: err.Error()}
			continue
		}
		k.Keys[key], k.Methods[key] = q.Key, q.Method
		requests = append(requests, call.AskRequest{Key: key, Method: q.Method, Params: params})
	}
	switch {
	case suspended && len(refused) > 0:
		c.Respond(refused)
		return scripting.Outcome{}, true
	case len(refused) > 0:
		first := slices.Sorted(maps.Keys(refused))[0]
		return failed("the upstream server sends an input request that is not allowed: %s", refused[first].Refusal), false
	case len(requests) == 0:
		return failed("the upstream server requests a retry without input requests"), false
	case len(k.State) > maxState:
		return failed("the upstream server sends a request state of more than %d bytes", maxState), false
	case suspended && rc.invocation.Host.InputPolicy.InDryRun:
		c.Cancel(errDryRun)
	case suspended:
		if k.Handle = rc.pool.Suspend(c, rc.principalKey()); k.Handle == "" {
			return failed("the upstream server requests input, but too many calls wait for responses; call again later"), false
		}
	}
	// Plain data always encodes.
	state, _ := json.Marshal(k)
	payload, _ := json.Marshal(map[string]any{"requests": requests})
	return rc.invocation.Journal.SaveState(state, payload), false
}

// principalKey returns text that is unique to the principal of the call.
func (rc *remoteCall) principalKey() string {
	p := &rc.invocation.Caller.Principal
	return fmt.Sprintf("%q %q %q", p.Kind, p.Issuer, p.ID)
}

// checkPermission checks whether the client of the call may receive this request.
func (rc *remoteCall) checkPermission(ctx context.Context, method string, params json.RawMessage) error {
	// Decoded JSON always encodes.
	payload, _ := json.Marshal(map[string]any{"requests": []call.AskRequest{{Key: "q", Method: method, Params: params}}})
	_, err := rc.invocation.Host.Do(ctx, 0, "ask", payload)
	var refused *scripting.HostError
	switch {
	case errors.Is(err, scripting.ErrSuspended):
		return nil
	case errors.As(err, &refused):
		return errors.New(refused.Message)
	}
	return errors.New("the client cannot be asked")
}

// originKey is the member of _meta that names the requesting server.
const originKey = "mcpd/upstream"

// clientParams returns the parameters of an input request for the client. It keeps only members
// that MCP defines, and labels texts for users with the name of the server.
func (rc *remoteCall) clientParams(q call.AskRequest) (json.RawMessage, error) {
	var params map[string]any
	var err error
	switch object := presentMembers(q.Params); q.Method {
	case "elicitation/create":
		params, err = rc.elicitation(object)
	case "sampling/createMessage":
		params, err = rc.sampling(object)
	case "roots/list":
		params = map[string]any{}
	default:
		err = fmt.Errorf("%.64q is not a supported input request", q.Method)
	}
	if err != nil {
		return nil, err
	}
	params["_meta"] = map[string]any{originKey: rc.server}
	return json.Marshal(params)
}

// resume continues a call after its client has responded.
func (rc *remoteCall) resume(ctx context.Context, state, answers []byte) (*upstream.Call, *scripting.Failure, error) {
	var k resumeState
	var payload struct{ Responses map[string]json.RawMessage }
	if err := errors.Join(json.Unmarshal(state, &k), json.Unmarshal(answers, &payload)); err != nil {
		return nil, nil, fmt.Errorf("resume upstream call: %w", err)
	}
	responses := make(map[string]json.RawMessage, len(k.Keys))
	for key, serverKey := range k.Keys {
		response := payload.Responses[key]
		if k.Handle == "" && k.Methods[key] != "elicitation/create" && isRefusal(response) {
			return nil, &scripting.Failure{Kind: scripting.AskDenied, Message: "the input request of the upstream server was declined", Details: []byte(`{"reason":"declined"}`)}, nil
		}
		responses[serverKey] = response
	}
	if k.Handle == "" {
		return rc.send(ctx, rc.request(responses, k.State))
	}
	c := rc.pool.Resume(k.Handle, rc.relay)
	if c == nil {
		return nil, &scripting.Failure{Kind: scripting.Thrown, Message: "the upstream server no longer waits for this response; call again"}, nil
	}
	inputs := make(map[string]upstream.InputResponse, len(responses))
	for key, serverKey := range k.Keys {
		if answer := responses[serverKey]; k.Methods[key] != "elicitation/create" && isRefusal(answer) {
			inputs[serverKey] = upstream.InputResponse{Refusal: "the client refuses"}
		} else {
			inputs[serverKey] = upstream.InputResponse{Result: answer}
		}
	}
	c.Respond(inputs)
	return c, nil, nil
}

func isRefusal(answer json.RawMessage) bool {
	action := decoded(answer).text("action")
	return action == "decline" || action == "cancel"
}

// decoded returns the members of a JSON object, or nil.
func decoded(raw json.RawMessage) (o jsonObject) {
	_ = json.Unmarshal(raw, &o)
	return o
}

// elicitation returns the parameters of an elicitation, in form or URL mode. Members of the
// other mode and unknown modes would pass unchecked, so they are dropped or rejected.
func (rc *remoteCall) elicitation(object jsonObject) (map[string]any, error) {
	params := map[string]any{"message": rc.labeled(object.text("message"), safetext.Words)}
	switch mode := object.text("mode"); {
	case mode == "url":
		if !isAllowedURL(object.text("url")) {
			return nil, errors.New("the url of an elicitation must use https and ASCII")
		}
		params["mode"], params["url"] = mode, object.text("url")
		if id := object.text("elicitationId"); id != "" {
			params["elicitationId"] = id
		}
		return params, nil
	case mode == "form":
		params["mode"] = mode
	case object["mode"] != nil:
		return nil, errors.New("the mode of an elicitation must be form or url")
	}
	form, err := newForm(object["requestedSchema"], rc.title)
	params["requestedSchema"] = form
	return params, err
}

// labeled writes a text of the server after its label. It does not alter text that holds a
// secret: the request is refused for it, and part of a secret would not be recognized.
func (rc *remoteCall) labeled(text string, write func(label, text string, limit int) string) string {
	label := "[" + rc.server + "] "
	if rc.holdsSecret(text) {
		return label + text
	}
	return write(label, text, maxMessage)
}

// maxTitle bounds one text in a form, in bytes.
const maxTitle = 4 << 10

// title writes a text in a form, unless it holds a secret.
func (rc *remoteCall) title(text string) string {
	if rc.holdsSecret(text) {
		return text
	}
	return safetext.Title(text, maxTitle)
}

func (rc *remoteCall) holdsSecret(text string) bool {
	return rc.invocation.Host.Secrets.Redact(text) != text
}

// isAllowedURL reports whether users may be sent to a URL. It must look the same to all readers.
func isAllowedURL(text string) bool {
	u, err := url.Parse(text)
	invalid := func(r rune) bool { return r <= ' ' || r > '~' || r == '\\' }
	return err == nil && u.Scheme == "https" && u.Host != "" && u.User == nil && !strings.ContainsFunc(text, invalid)
}
