package mcp

import (
	"context"

	"github.com/mcpd/mcpd/internal/base/jsontext"
)

func initialize(_ context.Context, c *request) (*result, *fault) {
	if c.origin.session != nil {
		return nil, malformed("the session is initialized already")
	}
	asked, ok := jsontext.Text(jsontext.Get(c.params, "protocolVersion"))
	if !ok {
		return nil, invalidParams("params.protocolVersion must be a string")
	}
	info := c.server.backend.Info()
	opened := newSession(c.origin.peer.Principal, negotiate(asked), clientName(jsontext.Get(c.params, "clientInfo")))
	opened.can = capabilitiesOf(jsontext.Get(c.params, "capabilities"), opened.version)
	if conn := c.origin.conn; conn != nil {
		conn.origin.session = opened
	} else if !c.server.sessions.add(opened) {
		return nil, newFault(codeInternal, Unavailable, "too many sessions are in use")
	}
	b := appendText(nil, "protocolVersion", opened.version)
	b = appendValue(b, "capabilities", []byte(c.server.capabilities(legacy)))
	b = appendValue(b, "serverInfo", c.server.implementation())
	if info.Instructions != "" {
		b = appendText(b, "instructions", info.Instructions)
	}
	return &result{members: b, revision: info.Revision, session: opened.id}, nil
}

func ping(context.Context, *request) (*result, *fault) { return &result{}, nil }

// shutdown is no method of the specification, but clients send it: it is
// answered, and then the connection or the session ends.
func shutdown(_ context.Context, c *request) (*result, *fault) {
	if c.origin.session.id != "" {
		c.server.sessions.remove(c.origin.session)
	}
	return &result{last: true}, nil
}

// implementation returns what the server says of itself as an Implementation
// object. It is encoded once for as long as the backend says the same.
func (s *Server) implementation() []byte {
	info := s.backend.Info()
	if known := s.described.Load(); known != nil && known.of(&info) {
		return known.json
	}
	b := appendText([]byte{'{'}, "name", info.Name)
	if info.Title != "" {
		b = appendText(b, "title", info.Title)
	}
	b = appendText(b, "version", info.Version)
	if info.Description != "" {
		b = appendText(b, "description", info.Description)
	}
	b = append(appendIcons(b, info.Icons), '}')
	s.described.Store(&description{name: info.Name, version: info.Version, revision: info.Revision, json: b})
	return b
}

// description is what the server says of itself, and its encoding.
type description struct {
	name, version, revision string
	json                    []byte
}

// of reports whether the description is that of a server: what else it says of
// itself changes with its revision.
func (d *description) of(info *Info) bool {
	return d.revision == info.Revision && d.name == info.Name && d.version == info.Version
}
