package mcp

import (
	"net/http"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/internal/base/httpheader"
	"github.com/mcpd/mcpd/internal/base/jsontext"
)

// The headers that claim an agent, in canonical form.
const (
	headerAgentID    = "X-Agent-Id"
	headerAgentModel = "X-Agent-Model"
	headerAgentMeta  = "X-Agent-Meta-"
	headerRequestID  = httpheader.RequestID
)

// AgentFromHeaders reads X-Agent-Id, X-Agent-Model, X-Agent-Meta-* and
// X-Request-Id; the keys of metadata are lower case, as the case of header
// names has no meaning. The error has the code [call.InvalidInput].
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

// clientName returns "name/version" of an Implementation object, or what it has
// of the two.
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

// fitName makes what a client calls itself fit for an agent's id: within its
// bound, and without control characters.
func fitName(name string) string {
	name = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return -1
		}
		return r
	}, name)
	return strings.ToValidUTF8(name[:min(len(name), maxClaim)], "")
}
