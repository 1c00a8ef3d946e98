package mcp

import (
	"encoding/json"
	"time"
)

// Ask says that a call waits for its client: it has ended for now, and
// [Backend].Call is called again with the answers.
type Ask struct {
	// Requests are what the client is asked, at least one; [Request].Can says
	// what it can be asked.
	Requests []AskRequest
	// State comes back in [Resume]. Modern clients carry it, so that it must
	// be sealed against them.
	State string
	// Wait is how long the call waits for the answers; 0 stands for 5 minutes.
	// A modern client is not waited for.
	Wait time.Duration
}

// AskRequest is one thing that a client is asked.
type AskRequest struct {
	// Key is that of the answer, unique within the call.
	Key string
	// Method is elicitation/create, sampling/createMessage or roots/list.
	Method string
	// Params is a JSON object; nil for none.
	Params json.RawMessage
}

// Resume is what the client answered to an [Ask].
type Resume struct {
	// State is that of the Ask. That of a modern client may be anything; it is
	// empty when the client sent none.
	State string
	// Responses are the results by the keys of the requests, each a JSON
	// object. A modern client may have left some out, and made some up.
	Responses map[string]json.RawMessage
	// Refused are the requests that a legacy client answered with an error.
	Refused map[string]RPCError
}

// askWait is how long a call waits that does not say how long.
const askWait = 5 * time.Minute

const (
	methodElicit = "elicitation/create"
	methodSample = "sampling/createMessage"
	methodRoots  = "roots/list"
)

// needsOf returns the capabilities that the requests of an ask take. ok is false if a client
// can not be asked one of them.
func needsOf(a *Ask) (needs Capabilities, ok bool) {
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
			needs.SampleTools = needs.SampleTools || !isNull(member(r.Params, "tools")) || !isNull(member(r.Params, "toolChoice"))
		case methodRoots:
			needs.Roots = true
		default:
			return needs, false
		}
	}
	return needs, len(a.Requests) > 0
}

// isURL reports whether a request sends the user to a URL.
func isURL(r *AskRequest) bool {
	mode, _ := text(member(r.Params, "mode"))
	return r.Method == methodElicit && mode == "url"
}

const keyElicitation = "elicitationId"

// appendRequest appends the members of a request as a revision has them. The id
// of an elicitation by URL exists in 2025-11-25 alone: there it must be, and is
// that of the request when the call gives none.
func appendRequest(dst []byte, r *AskRequest, version, id string) []byte {
	dst = appendText(dst, "method", r.Method)
	if isNull(r.Params) {
		return dst
	}
	dst = append(appendMember(dst, "params"), '{')
	params, hasID := []byte(r.Params), false
	if r.Method == methodSample {
		params = fitSampling(params, version)
	}
	for object, ok := members(params); ok; {
		var name, value []byte
		if name, value, ok = object.member(); !ok {
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
