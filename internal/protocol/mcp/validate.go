package mcp

import (
	"net/http"
	"slices"

	"github.com/mcpd/mcpd/internal/base/jsontext"
)

// admit determines the era of a request and checks the rules that all methods
// share.
func (c *request) admit() *fault {
	if c.meta.bad != nil {
		return c.meta.bad
	}
	if c.handler = c.server.methods[c.method]; c.handler == nil {
		c.handler = &method{}
	}
	if c.isModern() {
		c.era = modern
		return c.admitModern()
	}
	c.era = legacy
	return c.admitLegacy()
}

func (c *request) headers() http.Header {
	if c.origin.mirrored {
		return c.origin.peer.Headers
	}
	return nil
}

// isModern determines the era from the header and from _meta (2026-07-28
// basic/versioning, Backward Compatibility). A request is modern if it names a
// revision that is not legacy, or a method that legacy revisions lack.
func (c *request) isModern() bool {
	inBody := c.meta.version
	if inBody != "" && !isLegacy(inBody) {
		return true
	}
	if inHeader := c.headers().Get(headerVersion); inHeader != "" {
		return !isLegacy(inHeader)
	}
	return inBody == "" && c.origin.session == nil && c.handler.eras == modern
}

// admitModern validates the metadata of a modern request (2026-07-28
// basic/index, Per-request protocol fields; and
// basic/transports/streamable-http, Server Validation).
func (c *request) admitModern() *fault {
	if f := c.checkVersion(); f != nil {
		return f
	}
	if c.meta.capabilities == nil {
		return newFault(codeInvalidParams, Malformed, "params._meta: "+keyCapabilities+" is missing")
	}
	if h := c.headers(); h != nil {
		if f := checkHeader(h, headerMethod, c.method); f != nil {
			return f
		}
	}
	if c.handler.eras&modern == 0 {
		return c.unknownMethod()
	}
	if h := c.headers(); h != nil && c.handler.nameOf != "" {
		return checkName(h, jsontext.Unquote(c.named()))
	}
	return nil
}

// named returns the member of params that the header Mcp-Name mirrors.
func (c *request) named() []byte {
	switch c.handler.nameOf {
	case "name":
		return c.item.name
	case "uri":
		return c.item.uri
	}
	return jsontext.Get(c.params, c.handler.nameOf)
}

func (c *request) checkVersion() *fault {
	h := c.headers()
	requested := c.meta.version
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
func (c *request) admitLegacy() *fault {
	if c.origin.lost() {
		return unknownSession()
	}
	known := c.handler.eras&legacy != 0
	if c.origin.session == nil && !(known && c.handler.early) {
		return malformed("initialize first, and send the session's id with what follows, or name a modern revision in params._meta: " + keyVersion)
	}
	if !(known && c.handler.early) && !c.origin.session.ready.Load() && !c.server.backend.Info().LenientLifecycle {
		return newFault(codeInvalidRequest, Served, errHandshakeOpen)
	}
	if !known {
		return c.unknownMethod()
	}
	return nil
}

// errHandshakeOpen is the error of a request between initialize and
// notifications/initialized. The request is otherwise valid: HTTP sends the
// error with a success status, so that clients show its message.
const errHandshakeOpen = "the handshake is not complete: send the notification notifications/initialized (without an id) before any request except ping"

func (c *request) unknownMethod() *fault {
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
