package scripting

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
