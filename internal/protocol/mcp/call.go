package mcp

import (
	"cmp"
	"net/http"
	"time"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/identity"
)

// call is one request on its way through its method.
type request struct {
	server *Server
	origin *origin
	message
	// handler is the method; one that serves nothing when there is no such.
	handler *method
	era     era
	// left says that the call was answered while the backend holds its goroutine,
	// and alone is the batch of which it is all, where it can be; nil otherwise.
	left  bool
	alone *batch
	// emitter tells what comes before the result; nil when there is nothing to tell.
	emitter *emitter
	// request is its request_id, once somebody has asked who makes it: the same in all
	// that is said of it.
	request string
	// retryAfter is when a call that has failed may be tried again; 0 when that would
	// not help.
	retryAfter time.Duration
}

// result is the result of a method, as pieces of JSON.
type result struct {
	// resultType is what modern clients tell results apart by; empty stands
	// for "complete".
	resultType string
	// members are those of the result object, without the braces. They may
	// be shared with other results and are never written to.
	members []byte
	// more are further members, each with a comma before it.
	more []byte
	// revision is that of the tools that the result was made of.
	revision string
	// meta are further members of _meta, without the braces.
	meta []byte
	// session is the id of the session that was opened.
	session string
	// last says that the client wants nothing more after this result.
	last bool
}

// claim returns what the message and its headers claim together.
func (c *request) claim() (AgentClaim, *call.Error) {
	claim, err := parseAgent(c.meta.agent)
	for _, h := range [...]http.Header{c.origin.sent, c.origin.peer.Headers} {
		var headers AgentClaim
		if err == nil {
			headers, err = AgentFromHeaders(h)
		}
		if err == nil {
			claim, err = claim.merge(headers)
		}
	}
	if err != nil {
		return AgentClaim{}, err
	}
	return claim, nil
}

// caller returns who makes the call. The error is a [*CallError]: the claim is none, or
// the agent that the message claims is not the one that its headers claim, and the caller
// is the one that it would be if it claimed nothing; or an
// [*identity.ContradictionError], and the caller is whom it claims to be.
func (c *request) caller() (identity.Caller, error) {
	claim, refused := c.claim()
	client, source := clientName(c.meta.clientInfo), c.origin.peer.Source
	if c.era == legacy && c.origin.session != nil {
		client, source.Session = c.origin.session.client, c.origin.session.mark
	}
	claim.RequestID = cmp.Or(claim.RequestID, c.request)
	agent, err := claim.Of(&c.origin.peer.Principal, client)
	if refused != nil {
		err = refused
	}
	c.request = agent.RequestID
	return identity.Caller{Principal: c.origin.peer.Principal, Agent: agent, Source: source}, err
}

// answer puts a result into a response for the client's era: modern results
// tell their type and who made them.
func (c *request) answer(r *result) Frame {
	const room = 320 // for all but what the call and its result bring along
	text := append(make([]byte, 0, room+len(c.id)+len(r.more)+len(r.meta)), openFrame...)
	text = append(appendValue(text, "id", c.id), `,"result":{`...)
	if c.era == modern {
		text = appendText(text, "resultType", cmp.Or(r.resultType, "complete"))
		if len(r.members) > 0 {
			text = append(text, ',')
		}
	}
	head := len(text)
	text = c.appendEnd(text, r)
	return Frame{head: text[:head:head], body: r.members, tail: text[head:]}
}

// appendEnd appends what follows the members of a result: more of them, its
// _meta, and the ends of the result and the response.
func (c *request) appendEnd(dst []byte, r *result) []byte {
	dst = append(dst, r.more...)
	if c.era != modern && r.revision == "" && len(r.meta) == 0 {
		return append(dst, "}}"...)
	}
	if c.era == modern || len(r.members) > 0 {
		dst = append(dst, ',')
	}
	dst = append(dst, `"_meta":{`...)
	if c.era == modern {
		dst = appendValue(dst, keyServerInfo, c.server.implementation())
	}
	if r.revision != "" {
		dst = appendText(dst, keyRevision, r.revision)
	}
	if len(r.meta) > 0 && dst[len(dst)-1] != '{' {
		dst = append(dst, ',')
	}
	return append(append(dst, r.meta...), "}}}"...)
}
