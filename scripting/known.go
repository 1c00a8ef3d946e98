package scripting

import (
	"fmt"
	"slices"
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

// grantingGlobals are the globals whose members are what is granted.
func grantingGlobals() []string {
	return []string{"http", "fs", "env", "secrets", "kv", "exec", "sql", "tools", "modules"}
}

// isGranting reports whether the members of a global are what is granted.
func isGranting(global string) bool {
	return slices.Contains(grantingGlobals(), global)
}

// grantsOf returns the globals of this sort that objects make.
func grantsOf(objects []Object) []string {
	var names []string
	for _, global := range grantingGlobals() {
		if slices.ContainsFunc(objects, func(o Object) bool { return o.Kind == global }) {
			names = append(names, global)
		}
	}
	return names
}

// grantAdvice says how to make a member of such a global work. A name that is a
// method shows that the grant was left out.
func (c *compilation) grantAdvice(global, name string) string {
	grants := c.granted(global)
	switch {
	case global == "env":
		return fmt.Sprintf("add it to the allow block: env { names = [%q] }", name)
	case global == "secrets":
		return fmt.Sprintf("add it to the allow block: secrets { names = [%q] }, of a secret that the operator reveals", name)
	case global == "exec":
		return fmt.Sprintf("add exec %q { path = \"/…\" } to the allow block", name)
	case global == "kv":
		return c.kvAdvice(name)
	case global == "modules":
		return fmt.Sprintf("add module %q {} to the allow block", name)
	case global == "sql":
		return c.sqlAdvice(name)
	case global == "http" && slices.Contains(httpMethods(), name) && len(grants) > 0:
		return fmt.Sprintf("requests are made through a grant: write http.%s.%s(...); granted is %s", grants[0], name, strings.Join(grants, ", "))
	case global == "fs" && slices.Contains(slices.Concat(fileReaders(), fileWriters()), name) && len(grants) > 0:
		return fmt.Sprintf("files are reached through a grant: write fs.%s.%s(...); granted is %s", grants[0], name, strings.Join(grants, ", "))
	case global == "fs":
		return fmt.Sprintf("add fs %q { root = \"…\" } to the allow block", name)
	}
	return fmt.Sprintf("add http %q { hosts = [...] } to the allow block", name)
}

// fileReaders are the methods of fs.NAME, and fileWriters those that there are
// where the grant lets files be written.
func fileReaders() []string { return []string{"readText", "lines", "readBytes", "list", "stat"} }

func fileWriters() []string { return []string{"writeText", "writeBytes", "remove"} }

// fileMethods returns the methods of an object, and false when it is no folder.
func (c *compilation) fileMethods(object string) (names []string, ok bool) {
	name, ok := strings.CutPrefix(object, "fs.")
	if !ok || !slices.Contains(c.granted("fs"), name) {
		return nil, false
	}
	if slices.Contains(c.granted("fs.write"), name) {
		return slices.Concat(fileReaders(), fileWriters()), true
	}
	return fileReaders(), true
}

// checkWriting tells a method that a folder lacks because nothing may be written
// there, and reports whether it is one.
func (c *compilation) checkWriting(m member) bool {
	names, ok := c.fileMethods(m.object)
	if !ok || slices.Contains(names, m.name) || !slices.Contains(fileWriters(), m.name) {
		return false
	}
	c.report(diag.Diagnostic{
		Severity: diag.Error, Code: "unknown-grant", Summary: fmt.Sprintf("%s may not be written to, so it has no %s", m.object, m.name),
		Detail: `add mode = "rw" to its block`,
	}, m.start, m.end)
	return true
}
