package mcp

import "github.com/mcpd/mcpd/internal/jsongate"

// Decline answers a text of a client for a server that could not start: each request
// in it gets an error with the message why. The answer is empty when nobody waits for one.
// initialized reports whether a request was the first of a session, after which no client
// sends anything else.
func Decline(text []byte, why string) (answer []byte, initialized bool) {
	parsed, f := parse(text, jsongate.Client())
	if f != nil {
		return errorFrame(nil, &f.RPCError).Append(nil), false
	}
	for i := range parsed.pending {
		m := &parsed.pending[i].message
		e := &RPCError{Code: codeInternal, Message: why}
		switch {
		case m.bad != nil && !m.isOdd():
			e = &m.bad.RPCError
		case m.isResponse() || m.isNotification():
			continue
		}
		initialized = initialized || m.method == "initialize"
		if len(answer) > 0 {
			answer = append(answer, ',')
		}
		answer = errorFrame(m.id, e).Append(answer)
	}
	if parsed.isBatch && len(answer) > 0 {
		answer = append(append([]byte{'['}, answer...), ']')
	}
	return answer, initialized
}
