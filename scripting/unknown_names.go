package scripting

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mcpd/mcpd/diag"
)

// absent returns what to do about a name that other JavaScript hosts have, or
// that exists only when it is granted.
func (c *compilation) absent(name string) (advice string, ok bool) {
	if c.src.Kind == Code {
		return absentOfCode(name)
	}
	switch name {
	case "http":
		return `grant it: allow { http "name" { hosts = ["host:443"] } } makes http.name`, true
	case "fs":
		return `grant it: allow { fs "name" { root = "folder" } } makes fs.name`, true
	case "env":
		return `grant it: allow { env { names = ["NAME"] } } makes env.NAME`, true
	case "secrets":
		return `grant it: allow { secrets { names = ["name"] } } makes secrets.name, if the operator writes reveal = true in its block`, true
	case "exec":
		return `grant it: allow { exec "name" { path = "/usr/bin/program" } } makes exec.name`, true
	case "kv":
		return `grant it: allow { kv "name" {} } makes kv.name`, true
	case "sql":
		return `grant it: allow { sql "name" { driver = "sqlite" dsn = "file.db" statement "s" { query = "…" } } } makes sql.name, one argument on each line`, true
	case "tools":
		return `grant it: allow { call { tools = ["name"] } } makes tools.name`, true
	case "modules":
		return `grant it: allow { module "name" {} } makes modules.name, where the program that runs the file has such a module`, true
	case "elicit", "sample", "roots":
		return fmt.Sprintf("grant it: allow { ask { %s = true } }", name), true
	case "ask":
		return "grant what it asks for: allow { ask { elicit = true } } makes elicit and ask", true
	case "eval":
		return "text cannot be run as code here", true
	case "args":
		return "a tool's arguments are members of input; args is their name in policies", true
	case "principal":
		return `only policies know the principal; a tool can have input "NAME" { from = "principal.id" ... }.`, true
	case "secret":
		return "secrets stand in the headers of a grant; a body reads only those that the operator reveals, as secrets.NAME", true
	case "local":
		return "locals belong to the .hcl files; import a file, or use vars.NAME, declared by a variable block in mcpd.hcl", true
	case "input":
		return c.insteadOfInput(), true
	case "uri":
		return "only resources have a uri; what the body works on is " + c.subject(), true
	case "params":
		return "only resources and completions have params; what the body works on is " + c.subject(), true
	case "event":
		return "only hooks have an event; what the body works on is " + c.subject(), true
	}
	return ofOtherHosts(name)
}

// elsewhere says what to write for what other languages have, or nothing.
func (c *compilation) elsewhere(name string) string {
	if c.src.Kind == Code {
		if instead := nameOfPython(name); instead != "" {
			return instead
		}
	}
	switch name {
	case "None", "nil", "NULL":
		return "write null"
	case "True", "TRUE":
		return "write true"
	case "False", "FALSE":
		return "write false"
	case "print", "println", "printf", "echo":
		return "write log.info(…), or return what the caller is to see"
	case "len":
		return "write x.length"
	case "self":
		return "write this"
	case "str":
		return "write String(x)"
	case "int", "float":
		return "write Number(x)"
	}
	return ""
}

// nameOfPython returns what code writes instead of what Python and shells have by a name;
// nothing of any other.
func nameOfPython(name string) string {
	switch name {
	case "echo", "println", "printf":
		return "write console.log(…)"
	case "json":
		return "write JSON.parse(text) and JSON.stringify(value)"
	case "asyncio":
		return "write await in front of a call, and await parallel([…]) for several at once"
	case "__name__":
		return "leave the condition out, and write its statements alone: the program is run as it stands"
	case "raise":
		return "write throw new Error(…)"
	case "Exception", "ValueError", "KeyError", "RuntimeError":
		return "write new Error(…)"
	case "dict":
		return "write { … } or Object.fromEntries(pairs)"
	case "range":
		return "write for (let i = 0; i < n; i++) { … }"
	case "enumerate":
		return "write list.entries()"
	case "sorted":
		return "write [...list].sort()"
	case "isinstance":
		return "write typeof x, or Array.isArray(x)"
	case "pass":
		return "leave it out: braces may be empty"
	}
	return ""
}

// insteadOfInput says what a body sees that has no input.
func (c *compilation) insteadOfInput() string {
	switch c.src.Kind {
	case Resource:
		return "a resource sees uri, and the variables of its template as params"
	case Complete:
		return "a completion sees value, and what is filled in already as params"
	}
	return "a hook sees what happened as event"
}

// inherited reports whether every object has such a member.
func inherited(name string) bool {
	switch name {
	case "toString", "valueOf", "hasOwnProperty", "constructor", "toLocaleString",
		"propertyIsEnumerable", "isPrototypeOf", "__proto__", "toJSON":
		return true
	}
	return false
}

// ofOtherHosts returns what to write in a body for what Node, browsers and well-known
// packages have and bodies do not.
func ofOtherHosts(name string) (advice string, ok bool) {
	switch name {
	case "fetch", "XMLHttpRequest", "axios":
		return `use http.NAME.get(url), granted by allow { http "NAME" { hosts = ["host:443"] } }`, true
	case "WebSocket", "EventSource":
		return `a body cannot hold a connection open; use http.NAME.get(url), granted by allow { http "NAME" { hosts = ["host:443"] } }`, true
	case "Headers", "Request", "Response", "FormData":
		return "http.NAME takes and returns plain objects: http.NAME.post(url, { headers, json })", true
	case "Intl":
		return "use numbers.format(n, { decimals, group, point }) and dates.format(date, pattern, { zone })", true
	case "moment", "dayjs":
		return "use dates.parse, dates.format, dates.add and dates.diff", true
	case "require", "importScripts":
		return `packages cannot be loaded; write import { name } from "./file.js" for a file of the tools folder`, true
	case "module", "exports":
		return "a body exports nothing: return its result; a file that bodies import writes export", true
	case "process", "Deno", "Bun":
		return `use vars.NAME, declared by a variable block in mcpd.hcl, or env.NAME, granted by allow { env { names = ["NAME"] } }`, true
	case "Buffer", "Blob", "File", "FileReader":
		return "use Uint8Array, TextEncoder, TextDecoder, atob and btoa", true
	case "__dirname", "__filename":
		return `a body has no folder; read files with fs.NAME, granted by allow { fs "NAME" { root = "folder" } }`, true
	case "window", "document", "navigator", "location":
		return "there is no browser here; URL, crypto and other globals are used by their names alone", true
	case "global":
		return "write globalThis", true
	case "localStorage", "sessionStorage", "indexedDB":
		return `nothing in memory outlives the call; keep values with kv.NAME, granted by allow { kv "NAME" {} }`, true
	case "setImmediate", "requestAnimationFrame":
		return "use setTimeout(f, 0) or queueMicrotask(f)", true
	case "clearImmediate", "cancelAnimationFrame":
		return "use clearTimeout", true
	case "performance":
		return "use Date.now()", true
	case "prompt", "confirm":
		return "ask the user: await elicit({ message, schema }), granted by allow { ask { elicit = true } }", true
	case "alert":
		return "write log.info(…), or return what the caller is to see", true
	case "Worker", "SharedWorker":
		return "a body has one thread; wait for several host calls at once with await Promise.all([…])", true
	case "WebAssembly":
		return `run a program: exec.NAME, granted by allow { exec "NAME" { path = "/usr/bin/program" } }`, true
	}
	return "", false
}

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
