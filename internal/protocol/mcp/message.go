package mcp

import (
	"errors"

	"github.com/mcpd/mcpd/internal/base/jsonguard"
	"github.com/mcpd/mcpd/internal/base/jsontext"
)

const (
	// maxID bounds request ids in bytes: they are echoed, and stored while a
	// request is running.
	maxID = 1 << 10
	// maxBatch bounds the messages of a batch.
	maxBatch = 64
)

// message is one JSON-RPC message of a client, before validation. It shares the
// memory of its text.
type message struct {
	// id is the JSON of a string or an integer; empty for a notification.
	id     []byte
	method string
	// params is the JSON of an object; empty if absent. item and meta are parsed
	// from it.
	params []byte
	item   itemParams
	meta   meta
	// result and err are the members of a response: JSON, empty if absent.
	result, err []byte
	// bad is the reason why the message cannot be served; nil if it can.
	bad *fault
}

func (m *message) isNotification() bool { return len(m.id) == 0 }

// hasBadParams reports whether the message is a notification that is valid
// except for its params. Its sender expects no response.
func (m *message) hasBadParams() bool { return m.bad != nil && m.isNotification() && m.method != "" }

func (m *message) isResponse() bool { return m.method == "" }

// parse checks the text with the JSON guard and reads its messages: one, or the
// messages of a batch. Each message has its own error; the fault concerns the
// text as a whole.
func parse(text []byte, limits jsonguard.Limits) (*batch, *fault) {
	if err := jsonguard.Check(text, limits); err != nil {
		return nil, guardFault(err)
	}
	list, isBatch := jsontext.Elements(text)
	if !isBatch {
		b := &batch{}
		b.pending = b.single[:]
		b.pending[0].parse(text)
		return b, nil
	}
	b := &batch{isBatch: true}
	for {
		element, ok := list.Element()
		if !ok {
			break
		}
		if len(b.pending) == maxBatch {
			return nil, malformed("the batch holds too many messages")
		}
		b.pending = append(b.pending, pending{})
		b.pending[len(b.pending)-1].parse(element)
	}
	if len(b.pending) == 0 {
		return nil, malformed("the batch is empty")
	}
	b.replies = make([]Reply, len(b.pending))
	return b, nil
}

// guardFault maps an error of the JSON guard. A syntax error is a parse error.
// A text over a limit, or one that parsers may read differently, is an invalid
// request.
func guardFault(err error) *fault {
	var guardErr *jsonguard.Error
	if errors.As(err, &guardErr) {
		switch guardErr.Kind {
		case jsonguard.TooLarge:
			return newFault(codeInvalidRequest, TooLarge, guardErr.Error())
		case jsonguard.TooDeep, jsonguard.TooMany, jsonguard.DuplicateKey, jsonguard.BadNumber:
			return malformed(guardErr.Error())
		}
	}
	return newFault(codeParse, Malformed, "parse error: "+err.Error())
}

// parse reads the message in one pass. A bad message still has its id, if it
// could be read.
func (m *message) parse(text []byte) {
	object, ok := jsontext.Members(text)
	if !ok {
		m.bad = malformed("a message is a JSON object")
		return
	}
	var version, method, id []byte
	for {
		name, ok := object.Name()
		if !ok {
			break
		}
		switch string(name) {
		case "jsonrpc":
			version = object.Value()
		case "id":
			id = object.Value()
		case "method":
			method = object.Value()
		case "params":
			m.params = m.item.parse(&object, &m.meta)
		case "result":
			m.result = object.Value()
		case "error":
			m.err = object.Value()
		default:
			object.Value()
		}
	}
	isResponse := method == nil && (m.result != nil || m.err != nil)
	if bad := m.setID(id); !isResponse {
		m.bad = bad
	}
	if m.bad == nil && string(jsontext.Unquote(version)) != "2.0" {
		m.bad = malformed(`the member "jsonrpc" must be "2.0"`)
	}
	if m.bad == nil && !isResponse {
		m.bad = m.setMethod(method)
	}
}

// setID sets the id if the protocol allows it (2026-07-28 basic/index,
// Requests).
func (m *message) setID(id []byte) *fault {
	switch {
	case id == nil:
		return nil
	case len(id) > maxID:
		return malformed("the id is too long")
	case id[0] != '"' && !jsontext.IsInteger(id):
		return malformed("the id must be a string or an integer")
	}
	m.id = id
	return nil
}

func (m *message) setMethod(method []byte) *fault {
	name, ok := jsontext.Text(method)
	if !ok || name == "" {
		return malformed(`the member "method" must be a string that is not empty`)
	}
	m.method = name
	if jsontext.IsNull(m.params) {
		m.params = nil
	}
	if m.params != nil && !jsontext.IsObject(m.params) {
		return newFault(codeInvalidParams, Malformed, "params must be an object")
	}
	return nil
}

// The _meta keys that are read or written (2026-07-28 basic/index, _meta).
const (
	keyVersion        = "io.modelcontextprotocol/protocolVersion"
	keyClientInfo     = "io.modelcontextprotocol/clientInfo"
	keyCapabilities   = "io.modelcontextprotocol/clientCapabilities"
	keyLogLevel       = "io.modelcontextprotocol/logLevel"
	keyServerInfo     = "io.modelcontextprotocol/serverInfo"
	keySubscriptionID = "io.modelcontextprotocol/subscriptionId"

	// 2026-07-28 basic, Trace Context: these two have no prefix.
	keyTraceParent = "traceparent"
	keyTraceState  = "tracestate"

	keyAgent    = "mcpd/agent"
	keyError    = "mcpd/error"
	keyRevision = "mcpd/revision"
	keyTimeout  = "mcpd/timeout_ms"
)

// meta is the _meta object of a request. All fields but version are JSON, and
// empty if absent.
type meta struct {
	version       string
	clientInfo    []byte
	capabilities  []byte
	logLevel      []byte
	agent         []byte
	progressToken []byte
	// traceparent and tracestate are the caller's W3C Trace Context.
	traceparent, tracestate []byte
	// bad is the first error; nil if there is none.
	bad *fault
}

// parse reads params._meta, the next value.
func (m *meta) parse(c *jsontext.Cursor) {
	if !c.Enter() {
		if value := c.Value(); !jsontext.IsNull(value) {
			m.bad = newFault(codeInvalidParams, Malformed, "params._meta must be an object")
		}
		return
	}
	for {
		name, ok := c.Name()
		if !ok {
			break
		}
		value := c.Value()
		if len(value) == 0 {
			break
		}
		if f := m.set(name, value); m.bad == nil {
			m.bad = f
		}
	}
	c.Leave()
}

func (m *meta) set(name, value []byte) *fault {
	switch string(name) {
	case keyVersion:
		if m.version = revisionOf(value); m.version == "" {
			return malformedMeta(keyVersion, "must be a string that is not empty")
		}
	case keyClientInfo:
		m.clientInfo = value
	case keyCapabilities:
		if !jsontext.IsObject(value) {
			return malformedMeta(keyCapabilities, "must be an object")
		}
		m.capabilities = value
	case keyLogLevel:
		m.logLevel = value
	case keyAgent:
		m.agent = value
	case keyTraceParent:
		m.traceparent = value
	case keyTraceState:
		m.tracestate = value
	case "progressToken":
		if value[0] != '"' && !jsontext.IsInteger(value) || len(value) > maxID {
			return malformedMeta("progressToken", "must be a short string or an integer")
		}
		m.progressToken = value
	}
	return nil
}

func malformedMeta(name, rule string) *fault {
	return newFault(codeInvalidParams, Malformed, "params._meta: "+name+" "+rule)
}
