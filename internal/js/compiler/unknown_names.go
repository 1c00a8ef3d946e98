package compiler

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dop251/goja/file"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/scripting/source"
)

// checkNames reports undefined names. A script that uses typeof for a name expects that it may be
// absent, one that uses globalThis may define it there, and agent code runs up to the name.
func (c *compilation) checkNames(a *analysis) {
	severity := diag.Error
	if c.src.Kind == source.Code || a.isReferenced("globalThis") {
		severity = diag.Warning
	}
	for _, name := range slices.Sorted(maps.Keys(a.refs)) {
		at, free := a.globalRef(name)
		if len(c.list) >= maxReports {
			return
		}
		if !free || a.typeofTested[name] || c.isDefined(name) {
			continue
		}
		d := diag.Diagnostic{Severity: severity, Code: "undefined-name", Summary: name + " is not defined", Detail: "declare it"}
		if tool := c.toolAdvice(name, at); tool != "" {
			d.Detail = tool // reported where it is called
		} else if a.targets[name] && c.src.Kind != source.Code {
			d.Detail = "declare it with let or const"
			if guess := diag.DidYouMean(name, c.inScope(a, at)); guess != "" {
				d.Detail = guess + " Else declare it with let or const"
			}
		} else if c.src.Kind != source.Hook && slices.Contains(c.src.Inputs, name) {
			d.Detail = "write " + c.inputGlobal() + "." + name
		} else if advice, ok := c.unknownNameAdvice(name); ok {
			d.Severity, d.Detail = diag.Error, advice
		} else if meant := c.otherLanguageAdvice(name); meant != "" {
			d.Detail = meant
			if c.src.Kind == source.Code {
				d.Severity = diag.Error // before the code has any effect
			}
		} else if guess := c.suggestTool(name); guess != "" {
			d.Detail = guess
		} else if guess := c.nearName(a, name, at, append(globalsOf(&c.src, c.names()), builtins()...)); guess != "" {
			d.Detail = guess
		}
		c.report(d, at, at+file.Idx(len(name)))
	}
}

// unknownNameAdvice returns advice for a name of other JavaScript hosts, or one that must be
// granted.
func (c *compilation) unknownNameAdvice(name string) (advice string, ok bool) {
	if c.src.Kind == source.Code {
		return unknownCodeNameAdvice(name)
	}
	switch name {
	case "input":
		switch c.src.Kind {
		case source.Resource:
			return "a resource has uri, and the variables of its template as params", true
		case source.Complete:
			return "a completion has value, and the arguments that are filled in already as params", true
		}
		return "a hook has the event as event", true
	case "uri":
		return "only resources have a uri; the input of this script is " + c.inputGlobal(), true
	case "params":
		return "only resources and completions have params; the input of this script is " + c.inputGlobal(), true
	case "event":
		return "only hooks have an event; the input of this script is " + c.inputGlobal(), true
	case "elicit", "sample", "roots":
		return fmt.Sprintf("grant it: allow { ask { %s = true } }", name), true
	}
	if advice, ok = scriptHints[name]; !ok {
		advice, ok = otherHostHints[name]
	}
	return advice, ok
}

// scriptHints is advice for names that must be granted, or exist elsewhere in mcpd.
var scriptHints = byName([]hint{
	{"http", `grant it: allow { http "name" { hosts = ["host:443"] } } makes http.name`},
	{"fs", `grant it: allow { fs "name" { root = "folder" } } makes fs.name`},
	{"env", `grant it: allow { env { names = ["NAME"] } } makes env.NAME`},
	{"secrets", `grant it: allow { secrets { names = ["name"] } } makes secrets.name, if the operator writes reveal = true in its block`},
	{"exec", `grant it: allow { exec "name" { path = "/usr/bin/program" } } makes exec.name`},
	{"kv", `grant it: allow { kv "name" {} } makes kv.name`},
	{"sql", `grant it: allow { sql "name" { driver = "sqlite" dsn = "file.db" statement "s" { query = "…" } } } makes sql.name, one argument on each line`},
	{"tools", `grant it: allow { call { tools = ["name"] } } makes tools.name`},
	{"modules", `grant it: allow { module "name" {} } makes modules.name, if the program that embeds mcpd has such a module`},
	{"ask", "grant the input request: allow { ask { elicit = true } } makes elicit and ask"},
	{"eval", "text cannot be run as code here"},
	{"args", "a tool's arguments are members of input; args is their name in policies"},
	{"principal", `only policies know the principal; a tool can have input "NAME" { from = "principal.id" ... }.`},
	{"secret", "secrets are used in headers of a grant; a script can read only secrets that the operator reveals, as secrets.NAME"},
	{"local", "locals belong to the .hcl files; import a file, or use vars.NAME, declared by a variable block in mcpd.hcl"},
})

// otherLanguageAdvice returns advice for names of other languages; empty if there is none.
func (c *compilation) otherLanguageAdvice(name string) string {
	if c.src.Kind == source.Code && pythonHints[name] != "" {
		return pythonHints[name]
	}
	return otherLanguageHints[name]
}

// otherLanguageHints is advice for names of other languages, in scripts and agent code.
var otherLanguageHints = byName([]hint{
	{"None nil NULL", "write null"},
	{"True TRUE", "write true"},
	{"False FALSE", "write false"},
	{"print println printf echo", "write log.info(…), or return the text to the caller"},
	{"len", "write x.length"},
	{"self", "write this"},
	{"str", "write String(x)"},
	{"int float", "write Number(x)"},
})

// pythonHints is advice for names of Python and shells, in agent code.
var pythonHints = byName([]hint{
	{"echo println printf", "write console.log(…)"},
	{"json", "write JSON.parse(text) and JSON.stringify(value)"},
	{"asyncio", "write await before a call, and await parallel([…]) for several at once"},
	{"__name__", "remove the condition, and write only its statements: the whole program runs"},
	{"raise", "write throw new Error(…)"},
	{"Exception ValueError KeyError RuntimeError", "write new Error(…)"},
	{"dict", "write { … } or Object.fromEntries(pairs)"},
	{"range", "write for (let i = 0; i < n; i++) { … }"},
	{"enumerate", "write list.entries()"},
	{"sorted", "write [...list].sort()"},
	{"isinstance", "write typeof x, or Array.isArray(x)"},
	{"pass", "leave it out: braces may be empty"},
})

// isObjectPrototypeMember reports whether every object has such a member.
func isObjectPrototypeMember(name string) bool {
	switch name {
	case "toString", "valueOf", "hasOwnProperty", "constructor", "toLocaleString",
		"propertyIsEnumerable", "isPrototypeOf", "__proto__", "toJSON":
		return true
	}
	return false
}

// otherHostHints is advice for names of Node, browsers and well-known packages.
var otherHostHints = byName([]hint{
	{"fetch XMLHttpRequest axios", `use http.NAME.get(url), granted by allow { http "NAME" { hosts = ["host:443"] } }`},
	{"WebSocket EventSource", `a script cannot hold a connection open; use http.NAME.get(url), granted by allow { http "NAME" { hosts = ["host:443"] } }`},
	{"Headers Request Response FormData", "http.NAME takes and returns plain objects: http.NAME.post(url, { headers, json })"},
	{"Intl", "use numbers.format(n, { decimals, group, point }) and dates.format(date, pattern, { zone })"},
	{"moment dayjs", "use dates.parse, dates.format, dates.add and dates.diff"},
	{"require importScripts", `packages cannot be loaded; write import { name } from "./file.js" for a file of the tools folder`},
	{"module exports", "a script exports nothing: return its result; only imported files write export"},
	{"process Deno Bun", `use vars.NAME, declared by a variable block in mcpd.hcl, or env.NAME, granted by allow { env { names = ["NAME"] } }`},
	{"Buffer Blob File FileReader", "use Uint8Array, TextEncoder, TextDecoder, atob and btoa"},
	{"__dirname __filename", `a script has no folder; read files with fs.NAME, granted by allow { fs "NAME" { root = "folder" } }`},
	{"window document navigator location", "there is no browser here; use URL, crypto and other globals by name"},
	{"global", "write globalThis"},
	{"localStorage sessionStorage indexedDB", `nothing in memory outlives the call; keep values with kv.NAME, granted by allow { kv "NAME" {} }`},
	{"setImmediate requestAnimationFrame", "use setTimeout(f, 0) or queueMicrotask(f)"},
	{"clearImmediate cancelAnimationFrame", "use clearTimeout"},
	{"performance", "use Date.now()"},
	{"prompt confirm", "ask the user: await elicit({ message, schema }), granted by allow { ask { elicit = true } }"},
	{"alert", "write log.info(…), or return the text to the caller"},
	{"Worker SharedWorker", "a script has one thread; wait for several host calls at once with await Promise.all([…])"},
	{"WebAssembly", `run a program: exec.NAME, granted by allow { exec "NAME" { path = "/usr/bin/program" } }`},
})

// byName returns a map of hints, each for several names.
func byName(hints []hint) map[string]string {
	table := map[string]string{}
	for _, hint := range hints {
		for name := range strings.FieldsSeq(hint.part) {
			table[name] = hint.advice
		}
	}
	return table
}

// fixedMembers returns the members of a global that has the same members in every script of its
// kind; ok is false for other globals.
func (c *compilation) fixedMembers(object string) (names []string, ok bool) {
	switch object {
	case "log":
		return LogLevels(), true
	case "console":
		return ConsoleMethods(), true
	case "progress":
		return []string{"disconnect"}, c.hasGlobal(object)
	case "content":
		return []string{"text", "image", "audio", "resource", "link", "structured"}, c.hasGlobal(object)
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
		return []string{"agent_id", "model", "request_id", "metadata", "verified"}, c.hasGlobal(object)
	case "call":
		return []string{"id", "tool", "via", "deadline", "depth", "parent"}, c.hasGlobal(object)
	case "event":
		return eventMembers(), c.hasGlobal(object)
	}
	names = c.grantMembers(object)
	return names, names != nil
}

// eventMembers returns the members of event, in all phases.
func eventMembers() []string {
	return []string{
		"kind", "phase", "tool", "uri", "call_id", "root_id", "leg", "outcome", "cached", "via", "depth", "parent", "parent_id", "principal", "agent", "arguments", "result", "error", "cancelled_by", "cancel_reason", "duration_ms", "revision",
	}
}

// DidYouMean suggests a similar name, or one that the author shortened or lengthened: log.err,
// log.warning.
func DidYouMean(name string, names []string) string {
	if guess := closest(name, names); guess != "" {
		return fmt.Sprintf("did you mean %q?", guess)
	}
	return ""
}

// closest returns the name that [DidYouMean] suggests; empty if there is none.
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

// grantingGlobals returns the globals with grants as members.
func grantingGlobals() []string {
	return []string{"http", "fs", "env", "secrets", "kv", "exec", "sql", "tools", "modules"}
}

// isGranting reports whether a global has grants as members.
func isGranting(global string) bool {
	return slices.Contains(grantingGlobals(), global)
}

// grantsOf returns the granting globals for objects.
func grantsOf(objects []source.Object) []string {
	var names []string
	for _, global := range grantingGlobals() {
		if slices.ContainsFunc(objects, func(o source.Object) bool { return o.Kind == global }) {
			names = append(names, global)
		}
	}
	return names
}

// grantMembers returns the members of a grant, such as kv.NAME; nil for other objects.
func (c *compilation) grantMembers(object string) []string {
	global, name, _ := strings.Cut(object, ".")
	if global == "modules" {
		return c.granted(object)
	}
	if !slices.Contains(c.granted(global), name) {
		return nil
	}
	writes, opens := slices.Contains(c.granted(global+".write"), name), slices.Contains(c.granted(global+".open"), name)
	switch {
	case global == "http":
		return append(HTTPMethods(), "request")
	case global == "kv":
		return kvMethods()
	case global == "fs" && writes:
		return slices.Concat(fileReaders(), fileWriters())
	case global == "fs":
		return fileReaders()
	case global == "sql" && opens && writes: // an invalid grant, which is reported elsewhere
		return []string{"query", "exec", "open"}
	case global == "sql" && opens:
		return []string{"open"}
	case global == "sql" && writes:
		return []string{"query", "exec"}
	case global == "sql":
		return []string{"query"}
	}
	return nil
}

// grantAdvice returns advice for an unknown member of a granting global. If name is a method, the
// author omitted the name of the grant.
func (c *compilation) grantAdvice(global, name string) string {
	advice, methods, through := `add http %q { hosts = [...] } to the allow block`, HTTPMethods(), "requests are made"
	switch global {
	case "env":
		advice, methods = "add it to the allow block: env { names = [%q] }", nil
	case "secrets":
		advice, methods = "add it to the allow block: secrets { names = [%q] }, of a secret that the operator reveals", nil
	case "exec":
		advice, methods = `add exec %q { path = "/…" } to the allow block`, nil
	case "modules":
		advice, methods = "add module %q {} to the allow block", nil
	case "kv":
		advice, methods, through = "add kv %q {} to the allow block", kvMethods(), "values are kept"
	case "sql":
		advice, methods, through = `add sql %q { driver = "sqlite" … } to the allow block`, []string{"query", "exec", "open"}, "statements are run"
	case "fs":
		advice, methods, through = `add fs %q { root = "…" } to the allow block`, slices.Concat(fileReaders(), fileWriters()), "files are reached"
	}
	if grants := c.granted(global); len(grants) > 0 && slices.Contains(methods, name) {
		return fmt.Sprintf("%s through a grant: write %s.%s.%s(...); granted is %s", through, global, grants[0], name, strings.Join(grants, ", "))
	}
	return fmt.Sprintf(advice, name)
}

// fileReaders returns the methods of fs.NAME that read; fileWriters those that exist if the grant
// permits writing.
func fileReaders() []string { return []string{"readText", "lines", "readBytes", "list", "stat"} }

func fileWriters() []string { return []string{"writeText", "writeBytes", "remove"} }

// checkWithheld reports a method that does not exist because the grant does not permit it, and
// reports whether it is one.
func (c *compilation) checkWithheld(m member) bool {
	names := c.grantMembers(m.object)
	if names == nil || slices.Contains(names, m.name) {
		return false
	}
	summary, detail := fmt.Sprintf("%s has no %s", m.object, m.name), ""
	switch global, _, _ := strings.Cut(m.object, "."); {
	case global == "fs" && slices.Contains(fileWriters(), m.name):
		summary, detail = fmt.Sprintf("%s is read-only, so it has no %s", m.object, m.name), `add mode = "rw" to its block`
	case global != "sql":
		return false
	case m.name == "exec" && names[0] == "query":
		detail = `the grant is read-only: add mode = "rw" to its block`
	case m.name == "open":
		detail = "its block names one database: write " + m.object + ".query(statement, params)"
	case names[0] == "open" && (m.name == "query" || m.name == "exec"):
		detail = "a call chooses the file: write const db = await " + m.object + ".open(path), and await db.query(statement, params); such files are read-only"
	default:
		return false
	}
	c.report(diag.Diagnostic{Severity: diag.Error, Code: "unknown-grant", Summary: summary, Detail: detail}, m.start, m.end)
	return true
}
