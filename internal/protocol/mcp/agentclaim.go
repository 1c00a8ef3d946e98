package mcp

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/base/httpheader"
	"github.com/mcpd/mcpd/internal/base/jsontext"
)

// maxClaim bounds an agent's id, its model and a request id, in bytes.
const maxClaim = httpheader.MaxRequestID

// AgentClaim is an agent as one source describes it: the REST member "agent",
// the _meta entry "mcpd/agent", or the X-Agent headers. Empty fields are not
// claimed. No field is verified.
type AgentClaim identity.Agent

// ClaimOf merges the claim in a message, {"agent_id", "model", "request_id",
// "metadata"} or nil, with the claim in the headers of the message. The two
// must not contradict each other. message has passed the JSON guard. The error
// has the code [call.InvalidInput].
func ClaimOf(message json.RawMessage, headers AgentClaim) (AgentClaim, *call.Error) {
	claim, err := parseAgent(message)
	if err == nil {
		claim, err = claim.merge(headers)
	}
	if err != nil {
		return AgentClaim{}, err
	}
	return claim, nil
}

func parseAgent(raw json.RawMessage) (c AgentClaim, _ *call.Error) {
	if jsontext.IsNull(raw) {
		return c, nil
	}
	object, ok := jsontext.Members(raw)
	if !ok {
		return c, badClaim("agent", "must be an object")
	}
	for {
		name, value, ok := object.Member()
		if !ok {
			break
		}
		if err := c.set(string(name), value); err != nil {
			return AgentClaim{}, err
		}
	}
	return c, c.check(bodyNames())
}

func (c *AgentClaim) set(name string, value []byte) *call.Error {
	if jsontext.IsNull(value) {
		return nil
	}
	var field *string
	switch name {
	case "agent_id":
		field = &c.AgentID
	case "model":
		field = &c.Model
	case "request_id":
		field = &c.RequestID
	case "metadata":
		return c.setMetadata(value)
	default:
		return badClaim("agent."+name, "is unknown; an agent has agent_id, model, request_id and metadata")
	}
	s, ok := jsontext.Text(value)
	if !ok {
		return badClaim("agent."+name, "must be a string")
	}
	*field = s
	return nil
}

func (c *AgentClaim) setMetadata(value []byte) *call.Error {
	object, ok := jsontext.Members(value)
	if !ok {
		return badClaim("agent.metadata", "must be an object of strings")
	}
	c.Metadata = map[string]string{}
	for {
		name, value, ok := object.Member()
		if !ok {
			return nil
		}
		s, ok := jsontext.Text(value)
		if !ok {
			return badClaim("agent.metadata", "must hold strings only")
		}
		c.Metadata[string(name)] = s
	}
}

// merge returns a claim with the fields of both claims.
func (c AgentClaim) merge(headers AgentClaim) (AgentClaim, *call.Error) {
	if headers.isEmpty() {
		return c, nil
	}
	names := bodyNames()
	for _, field := range [...]struct{ path, body, header string }{
		{names.agentID, c.AgentID, headers.AgentID}, {names.model, c.Model, headers.Model}, {names.requestID, c.RequestID, headers.RequestID},
	} {
		if field.body != "" && field.header != "" && field.header != field.body {
			return AgentClaim{}, badClaim(field.path, "contradicts the header of the request")
		}
	}
	c.AgentID, c.Model, c.RequestID = cmp.Or(c.AgentID, headers.AgentID), cmp.Or(c.Model, headers.Model), cmp.Or(c.RequestID, headers.RequestID)
	if len(headers.Metadata) == 0 {
		return c, nil
	}
	merged := maps.Clone(headers.Metadata)
	for key, value := range c.Metadata {
		if other, ok := merged[key]; ok && other != value {
			return AgentClaim{}, badClaim(names.metadata, "contradicts the headers of the request")
		}
		merged[key] = value
	}
	c.Metadata = merged
	return c, c.check(names)
}

// Agent returns the claim as the agent of a call. Without an agent id, the id
// is [identity.AnonymousAgent]; without a request id, it is generated. Without
// metadata, the map is nil.
func (c *AgentClaim) Agent() identity.Agent {
	a := identity.Agent(*c)
	if a.AgentID == "" {
		a.AgentID = identity.AnonymousAgent
	}
	if a.RequestID == "" {
		a.RequestID = httpheader.NewRequestID()
	}
	return a
}

// claimNames holds the names of a claim's parts at their source.
type claimNames struct{ agentID, model, requestID, metadata string }

func bodyNames() claimNames {
	return claimNames{"agent.agent_id", "agent.model", "agent.request_id", "agent.metadata"}
}

func (c *AgentClaim) isEmpty() bool {
	return c.AgentID == "" && c.Model == "" && c.RequestID == "" && len(c.Metadata) == 0
}

func (c *AgentClaim) check(names claimNames) *call.Error {
	if c.isEmpty() {
		return nil
	}
	for _, field := range [...]struct{ name, value string }{
		{names.agentID, c.AgentID}, {names.model, c.Model}, {names.requestID, c.RequestID},
	} {
		if len(field.value) > maxClaim {
			return badClaim(field.name, fmt.Sprintf("must not be longer than %d bytes", maxClaim))
		}
		if strings.ContainsFunc(field.value, unicode.IsControl) {
			return badClaim(field.name, "must not hold control characters")
		}
	}
	if !httpheader.IsVisible(c.RequestID) {
		return badClaim(names.requestID, "must be visible ASCII, as it is sent back in a header")
	}
	size := 0
	for key, value := range c.Metadata {
		size += len(key) + len(value)
	}
	if len(c.Metadata) > identity.MetadataEntries || size > identity.MetadataBytes {
		return badClaim(names.metadata, fmt.Sprintf("must not hold more than %d entries or %d bytes",
			identity.MetadataEntries, identity.MetadataBytes))
	}
	return nil
}

// Of returns the agent that the principal's claim stands for. client is the
// name of the client software; it is the agent id if there is no other. The
// error is an [*identity.ContradictionError] if the credential is bound to
// another agent; the returned agent is then the claimed one.
func (c *AgentClaim) Of(p *identity.Principal, client string) (identity.Agent, error) {
	agent := c.Agent()
	if p.Agent != "" {
		bound, err := p.Bind(agent)
		if err != nil {
			return agent, err
		}
		return bound, nil
	}
	if c.AgentID == "" && client != "" {
		agent.AgentID = client
	}
	return agent, nil
}

func badClaim(path, rule string) *call.Error {
	return &call.Error{Code: call.InvalidInput, Message: path + " " + rule, Violations: []call.Violation{{Path: path, Message: rule}}}
}

// The headers that claim an agent, in canonical form.
const (
	headerAgentID    = "X-Agent-Id"
	headerAgentModel = "X-Agent-Model"
	headerAgentMeta  = "X-Agent-Meta-"
	headerRequestID  = httpheader.RequestID
)

// AgentFromHeaders reads X-Agent-Id, X-Agent-Model, X-Agent-Meta-* and
// X-Request-Id. Metadata keys are lower case, as header names are
// case-insensitive. The error has the code [call.InvalidInput].
func AgentFromHeaders(h http.Header) (c AgentClaim, _ *call.Error) {
	for name, values := range h {
		if len(name) < 2 || name[0] != 'X' {
			continue
		}
		if err := c.setHeader(name, values); err != nil {
			return AgentClaim{}, err
		}
	}
	return c, c.check(claimNames{
		"header " + headerAgentID, "header " + headerAgentModel, "header " + headerRequestID, "header " + headerAgentMeta + "*",
	})
}

func (c *AgentClaim) setHeader(name string, values []string) *call.Error {
	key, isMeta := strings.CutPrefix(name, headerAgentMeta)
	if !isMeta && name != headerAgentID && name != headerAgentModel && name != headerRequestID {
		return nil
	}
	if len(values) != 1 {
		return badClaim("header "+name, "must be sent once")
	}
	value := values[0]
	if !utf8.ValidString(value) {
		return badClaim("header "+name, "must be UTF-8")
	}
	switch {
	case name == headerAgentID:
		c.AgentID = value
	case name == headerAgentModel:
		c.Model = value
	case name == headerRequestID:
		c.RequestID = value
	case key != "":
		if c.Metadata == nil {
			c.Metadata = map[string]string{}
		}
		c.Metadata[strings.ToLower(key)] = value
	}
	return nil
}

// clientName returns "name/version" of an Implementation object, or the one
// that it has.
func clientName(info []byte) string {
	var name, version []byte
	object, ok := jsontext.Members(info)
	for ok {
		var key, value []byte
		key, value, ok = object.Member()
		switch string(key) {
		case "name":
			name = jsontext.Unquote(value)
		case "version":
			version = jsontext.Unquote(value)
		}
	}
	if len(name) == 0 || len(version) == 0 {
		return fitName(string(name))
	}
	return fitName(string(name) + "/" + string(version))
}

// fitName makes a client's name valid as an agent id: within the bound and
// without control characters.
func fitName(name string) string {
	name = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return -1
		}
		return r
	}, name)
	return strings.ToValidUTF8(name[:min(len(name), maxClaim)], "")
}
