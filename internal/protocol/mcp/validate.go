package mcp

import (
	"net/http"
	"slices"

	"github.com/mcpd/mcpd/internal/base/jsontext"
)

// admit determines the era of a request and checks the rules that all methods
// share.
func (req *request) admit() *fault {
	if req.meta.bad != nil {
		return req.meta.bad
	}
	if req.handler = req.server.methods[req.method]; req.handler == nil {
		req.handler = &method{}
	}
	if req.isModern() {
		req.era = modern
		return req.admitModern()
	}
	req.era = legacy
	return req.admitLegacy()
}

func (req *request) headers() http.Header {
	if req.origin.mirrored {
		return req.origin.peer.Headers
	}
	return nil
}

// isModern determines the era from the header and from _meta (2026-07-28
// basic/versioning, Backward Compatibility). A request is modern if it names a
// revision that is not legacy, or a method that legacy revisions lack.
func (req *request) isModern() bool {
	inBody := req.meta.version
	if inBody != "" && !isLegacy(inBody) {
		return true
	}
	if inHeader := req.headers().Get(headerVersion); inHeader != "" {
		return !isLegacy(inHeader)
	}
	return inBody == "" && req.origin.session == nil && req.handler.eras == modern
}

// admitModern validates the metadata of a modern request (2026-07-28
// basic/index, Per-request protocol fields; and
// basic/transports/streamable-http, Server Validation).
func (req *request) admitModern() *fault {
	if f := req.checkVersion(); f != nil {
		return f
	}
	if req.meta.capabilities == nil {
		return newFault(codeInvalidParams, Malformed, "params._meta: "+keyCapabilities+" is missing")
	}
	if h := req.headers(); h != nil {
		if f := checkHeader(h, headerMethod, req.method); f != nil {
			return f
		}
	}
	if req.handler.eras&modern == 0 {
		return req.unknownMethod()
	}
	if h := req.headers(); h != nil && req.handler.nameOf != "" {
		return checkName(h, jsontext.Unquote(req.named()))
	}
	return nil
}

// named returns the member of params that the header Mcp-Name mirrors.
func (req *request) named() []byte {
	switch req.handler.nameOf {
	case "name":
		return req.item.name
	case "uri":
		return req.item.uri
	}
	return jsontext.Get(req.params, req.handler.nameOf)
}

func (req *request) checkVersion() *fault {
	h := req.headers()
	requested := req.meta.version
	if requested == "" {
		if v := h.Get(headerVersion); v != "" && v != newestModern {
			return unsupportedVersion(v)
		}
		return newFault(codeInvalidParams, Malformed, "params._meta: "+keyVersion+" is missing")
	}
	if h != nil {
		if f := checkHeader(h, headerVersion, requested); f != nil {
			return f
		}
	}
	if requested != newestModern {
		return unsupportedVersion(requested)
	}
	return nil
}

// admitLegacy enforces the lifecycle (2025-11-25 basic/lifecycle).
func (req *request) admitLegacy() *fault {
	if req.origin.lost() {
		return unknownSession()
	}
	known := req.handler.eras&legacy != 0
	if req.origin.session == nil && !(known && req.handler.early) {
		return malformed("initialize first, and send the session's id with what follows, or name a modern revision in params._meta: " + keyVersion)
	}
	if !(known && req.handler.early) && !req.origin.session.ready.Load() && !req.server.backend.Info().LenientLifecycle {
		return newFault(codeInvalidRequest, Served, errHandshakeOpen)
	}
	if !known {
		return req.unknownMethod()
	}
	return nil
}

// errHandshakeOpen is the error of a request between initialize and
// notifications/initialized. The request is otherwise valid: HTTP sends the
// error with a success status, so that clients show its message.
const errHandshakeOpen = "the handshake is not complete: send the notification notifications/initialized (without an id) before any request except ping"

func (req *request) unknownMethod() *fault {
	return newFault(codeMethodNotFound, UnknownMethod, "method not found")
}

// CheckVersion returns an error reply if the header names an unsupported
// revision; ok is true if it names a supported one, or none (2025-11-25
// basic/transports, Protocol Version Header).
func CheckVersion(h http.Header) (r Reply, ok bool) {
	requested := h.Get(headerVersion)
	if requested == "" || slices.Contains(versions[:], requested) {
		return Reply{}, true
	}
	return refuse(nil, unsupportedVersion(requested)), false
}

// unsupportedVersion returns a fault with the supported revisions (2026-07-28
// basic/versioning, Protocol Version Negotiation).
func unsupportedVersion(requested string) *fault {
	data := appendValue([]byte{'{'}, "supported", supported())
	data = append(appendText(data, "requested", requested), '}')
	return newFault(codeUnsupportedVersion, Malformed, "unsupported protocol version").with(data)
}

// The revisions of the protocol.
const (
	version20241105 = "2024-11-05"
	version20250326 = "2025-03-26"
	version20250618 = "2025-06-18"
	version20251125 = "2025-11-25"
	version20260728 = "2026-07-28"
)

// versions are the supported revisions, newest first.
var versions = [...]string{version20260728, version20251125, version20250618, version20250326, version20241105}

const (
	newestLegacy = version20251125
	newestModern = version20260728
)

// era is one of the two shapes of the protocol (2026-07-28 basic/versioning,
// Terminology).
type era uint8

const (
	// legacy revisions start with an initialize handshake and have sessions.
	legacy era = 1 << iota
	// modern revisions carry everything in each request.
	modern

	bothEras = legacy | modern
)

func isLegacy(version string) bool {
	return version != newestModern && slices.Contains(versions[:], version)
}

// revisionOf returns the revision that a JSON string names; empty if the value
// is not a string.
func revisionOf(value []byte) string {
	name := jsontext.Unquote(value)
	for _, known := range versions {
		if string(name) == known {
			return known
		}
	}
	return string(name)
}

func supported() []byte {
	b := []byte{'['}
	for i, v := range versions {
		if i > 0 {
			b = append(b, ',')
		}
		b = jsontext.AppendString(b, v)
	}
	return append(b, ']')
}
