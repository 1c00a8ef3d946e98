package mcp

import (
	"slices"

	"github.com/mcpd/mcpd/internal/base/jsontext"
)

// The revisions of the protocol.
const (
	version20241105 = "2024-11-05"
	version20250326 = "2025-03-26"
	version20250618 = "2025-06-18"
	version20251125 = "2025-11-25"
	version20260728 = "2026-07-28"
)

// versions are the revisions that are served, newest first.
var versions = [...]string{version20260728, version20251125, version20250618, version20250326, version20241105}

const (
	newestLegacy = version20251125
	newestModern = version20260728
)

// era tells the two shapes of the protocol apart (2026-07-28 basic/versioning,
// Terminology).
type era uint8

const (
	// legacy revisions begin with an initialize handshake and have sessions.
	legacy era = 1 << iota
	// modern revisions carry everything in each request.
	modern

	bothEras = legacy | modern
)

// isLegacy reports whether version is a legacy revision that is served.
func isLegacy(version string) bool {
	return version != newestModern && slices.Contains(versions[:], version)
}

// revisionOf returns the revision that a JSON string names; empty when the
// value is no string.
func revisionOf(value []byte) string {
	name := jsontext.Unquote(value)
	for _, known := range versions {
		if string(name) == known {
			return known
		}
	}
	return string(name)
}

// negotiate returns the revision of a session whose client asks for one: the
// one asked for, or the newest legacy one (2025-11-25 basic/lifecycle, Version
// Negotiation).
func negotiate(asked string) string {
	if isLegacy(asked) {
		return asked
	}
	return newestLegacy
}

// hasBatches reports whether sessions of the revision may send JSON-RPC batches.
func hasBatches(version string) bool {
	return version == version20250326 || version == version20241105
}

// supported returns the served revisions as a JSON array.
func supported() []byte {
	b := []byte{'['}
	for i, v := range versions {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendString(b, v)
	}
	return append(b, ']')
}
