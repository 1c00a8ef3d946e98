package mcp

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/mcpd/mcpd/internal/base/jsontext"
)

func initialize(_ context.Context, req *request) (*result, *fault) {
	if req.origin.session != nil {
		return nil, malformed("the session is initialized already")
	}
	version, ok := jsontext.Text(jsontext.Get(req.params, "protocolVersion"))
	if !ok {
		return nil, invalidParams("params.protocolVersion must be a string")
	}
	if !isLegacy(version) {
		version = newestLegacy
	}
	info := req.server.backend.Info()
	opened := newSession(req.origin.peer.Principal, version, clientName(jsontext.Get(req.params, "clientInfo")))
	opened.can = capabilitiesOf(jsontext.Get(req.params, "capabilities"), opened.version)
	if conn := req.origin.conn; conn != nil {
		conn.origin.session = opened
	} else if !req.server.sessions.add(opened) {
		return nil, newFault(codeInternal, Unavailable, "too many sessions are in use")
	}
	b := appendText(nil, "protocolVersion", opened.version)
	b = appendValue(b, "capabilities", []byte(req.server.capabilities(legacy)))
	b = appendValue(b, "serverInfo", req.server.implementation())
	if info.Instructions != "" {
		b = appendText(b, "instructions", info.Instructions)
	}
	return &result{members: b, revision: info.Revision, session: opened.id}, nil
}

func ping(context.Context, *request) (*result, *fault) { return &result{}, nil }

// shutdown answers a method that is not in the specification but that clients
// send. Then the connection or the session ends.
func shutdown(_ context.Context, req *request) (*result, *fault) {
	if req.origin.session.id != "" {
		req.server.sessions.remove(req.origin.session)
	}
	return &result{final: true}, nil
}

// implementation returns the server's Implementation object. It is encoded
// again only after the backend's info changes.
func (s *Server) implementation() []byte {
	info := s.backend.Info()
	if cached := s.encodedInfo.Load(); cached != nil && cached.matches(&info) {
		return cached.json
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
	s.encodedInfo.Store(&encodedInfo{name: info.Name, version: info.Version, revision: info.Revision, json: b})
	return b
}

// encodedInfo is an Implementation object with the info that it encodes.
type encodedInfo struct {
	name, version, revision string
	json                    []byte
}

// matches reports whether it encodes the info. The revision covers the fields
// that are not compared.
func (e *encodedInfo) matches(info *Info) bool {
	return e.revision == info.Revision && e.name == info.Name && e.version == info.Version
}

func discover(_ context.Context, req *request) (*result, *fault) {
	info := req.server.backend.Info()
	b := appendValue(nil, "supportedVersions", supported())
	b = appendValue(b, "capabilities", []byte(req.server.capabilities(modern)))
	if info.Instructions != "" {
		b = appendText(b, "instructions", info.Instructions)
	}
	more := appendCaching(nil, 0, false)
	return &result{members: b, more: more, revision: info.Revision}, nil
}

// appendCaching appends how long a modern client may cache a result, and for
// whom (2026-07-28 server/utilities/caching). A TTL of 0 makes clients ask each
// time, so that they miss no reload.
func appendCaching(dst []byte, ttl time.Duration, private bool) []byte {
	dst = strconv.AppendInt(append(dst, `,"ttlMs":`...), ttl.Milliseconds(), 10)
	if private {
		return append(dst, `,"cacheScope":"private"`...)
	}
	return append(dst, `,"cacheScope":"public"`...)
}

// LogLevels are the log levels, least severe first (RFC 5424 section 6.2.1).
var LogLevels = [...]string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}

// severityOf returns the severity of a level, from 1 up; 0 for an unknown
// level.
func severityOf(level string) int32 { return int32(slices.Index(LogLevels[:], level)) + 1 }

func setLevel(_ context.Context, req *request) (*result, *fault) {
	level, _ := jsontext.Text(jsontext.Get(req.params, "level"))
	severity := severityOf(level)
	if severity == 0 {
		return nil, invalidParams("params.level must be a log level")
	}
	req.origin.session.logLevel.Store(severity)
	return &result{}, nil
}

// logLevel returns the least severity that the client wants to receive; 0 if it
// wants no log messages.
func (req *request) logLevel() (int32, *fault) {
	if req.era == legacy {
		return req.origin.session.logLevel.Load(), nil
	}
	if jsontext.IsNull(req.meta.logLevel) {
		return 0, nil
	}
	level, _ := jsontext.Text(req.meta.logLevel)
	severity := severityOf(level)
	if severity == 0 {
		return 0, invalidParams("params._meta: " + keyLogLevel + " must be a log level")
	}
	return severity, nil
}
