package mcp

import (
	"time"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/internal/base/jsontext"
)

// askWait is how long a call waits that does not say how long.
const askWait = 5 * time.Minute

const (
	methodElicit = "elicitation/create"
	methodSample = "sampling/createMessage"
	methodRoots  = "roots/list"
)

// needsOf returns the capabilities that the requests of an ask take. ok is false if a client
// can not be asked one of them.
func needsOf(a *call.Ask) (needs call.Capabilities, ok bool) {
	for _, r := range a.Requests {
		switch r.Method {
		case methodElicit:
			if isURL(&r) {
				needs.URL = true
			} else {
				needs.Form = true
			}
		case methodSample:
			needs.Sample = true
			needs.SampleTools = needs.SampleTools || !jsontext.IsNull(jsontext.Get(r.Params, "tools")) || !jsontext.IsNull(jsontext.Get(r.Params, "toolChoice"))
		case methodRoots:
			needs.Roots = true
		default:
			return needs, false
		}
	}
	return needs, len(a.Requests) > 0
}

// isURL reports whether a request sends the user to a URL.
func isURL(r *call.AskRequest) bool {
	mode, _ := jsontext.Text(jsontext.Get(r.Params, "mode"))
	return r.Method == methodElicit && mode == "url"
}

const keyElicitation = "elicitationId"

// appendRequest appends the members of a request as a revision has them. The id
// of an elicitation by URL exists in 2025-11-25 alone: there it must be, and is
// that of the request when the call gives none.
func appendRequest(dst []byte, r *call.AskRequest, version, id string) []byte {
	dst = appendText(dst, "method", r.Method)
	if jsontext.IsNull(r.Params) {
		return dst
	}
	dst = append(appendMember(dst, "params"), '{')
	params, hasID := []byte(r.Params), false
	if r.Method == methodSample {
		params = fitSampling(params, version)
	}
	for object, ok := jsontext.Members(params); ok; {
		var name, value []byte
		if name, value, ok = object.Member(); !ok {
			break
		}
		if string(name) == keyElicitation && r.Method == methodElicit {
			if hasID = version == version20251125; !hasID {
				continue
			}
		}
		dst = appendValue(dst, string(name), value)
	}
	if !hasID && version == version20251125 && isURL(r) {
		dst = appendText(dst, keyElicitation, id)
	}
	return append(dst, '}')
}
