package scripting

import "fmt"

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
