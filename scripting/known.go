package scripting

import (
	"fmt"
	"strings"

	"github.com/mcpd/mcpd/diag"
)

// fixedMembers returns the names of the members of a global that has the same
// ones in every body of its kind, and false for other globals.
func (c *compilation) fixedMembers(object string) (names []string, ok bool) {
	switch object {
	case "log":
		return logLevels(), true
	case "console":
		return consoleMethods(), true
	case "progress":
		return []string{"disconnect"}, c.sees(object)
	case "content":
		return []string{"text", "image", "audio", "resource", "link", "structured"}, c.sees(object)
	case "crypto":
		return []string{"randomUUID", "getRandomValues", "subtle"}, true
	case "crypto.subtle":
		return []string{"digest", "importKey", "sign", "verify"}, true
	case "dates":
		return []string{"parse", "format", "parts", "add", "diff", "startOf"}, true
	case "numbers":
		return []string{"format", "parse", "formatBytes", "parseBytes", "formatDuration", "parseDuration"}, true
	case "csv", "toml", "yaml":
		return []string{"parse", "print"}, true
	case "AbortSignal":
		return []string{"abort", "timeout", "any"}, true
	case "JSON":
		return []string{"parse", "stringify"}, true
	case "agent":
		return []string{"agent_id", "model", "request_id", "metadata", "verified"}, c.sees(object)
	case "call":
		return []string{"id", "tool", "via", "deadline", "depth", "parent"}, c.sees(object)
	case "event":
		return eventMembers(), c.sees(object)
	}
	if names, ok := c.fileMethods(object); ok {
		return names, true
	}
	if names = c.kvMembers(object); names != nil {
		return names, true
	}
	if names = c.moduleMembers(object); names != nil {
		return names, true
	}
	if names = c.sqlMembers(object); names != nil {
		return names, true
	}
	for _, name := range c.granted("http") {
		if object == "http."+name {
			return append(httpMethods(), "request"), true
		}
	}
	return nil, false
}

func logLevels() []string { return []string{"debug", "info", "warn", "error"} }

func consoleMethods() []string { return []string{"debug", "error", "info", "log", "trace", "warn"} }

// httpMethods are the methods of http.NAME, but for request.
func httpMethods() []string { return []string{"get", "post", "put", "patch", "delete"} }

// eventMembers are what a hook sees of a call, in each of its phases.
func eventMembers() []string {
	return []string{
		"kind", "phase", "tool", "uri", "call_id", "root_id", "leg", "outcome", "cached", "via", "depth", "parent", "parent_id", "principal", "agent", "arguments", "result", "error", "cancelled_by", "cancel_reason", "duration_ms", "revision",
	}
}

// didYouMean asks for the name that is alike, or else for the one that the
// author shortened or lengthened: log.err, log.warning.
func didYouMean(name string, names []string) string {
	if guess := closest(name, names); guess != "" {
		return fmt.Sprintf("did you mean %q?", guess)
	}
	return ""
}

// closest returns the name that [didYouMean] asks for, or nothing.
func closest(name string, names []string) string {
	if guess := diag.Suggest(name, names); guess != "" {
		return guess
	}
	for _, other := range names {
		if len(name) > 2 && (strings.HasPrefix(other, name) || strings.HasPrefix(name, other)) {
			return other
		}
	}
	return ""
}
