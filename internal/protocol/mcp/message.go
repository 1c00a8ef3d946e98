package mcp

import (
	"errors"

	"github.com/mcpd/mcpd/internal/base/jsonguard"
	"github.com/mcpd/mcpd/internal/base/jsontext"
)

const (
	// maxID bounds the ids of requests in bytes: they are echoed, and kept
	// while a request is under way.
	maxID = 1 << 10
	// maxBatch bounds the messages of a batch.
	maxBatch = 64
)

// message is one JSON-RPC message of a client, not yet understood. It shares
// the memory of the text that it was read from.
type message struct {
	// id is the JSON of a string or an integer, and empty in a notification.
	id     []byte
	method string
	// params is the JSON of an object, and empty when there are none. item and
	// meta are what is read of it.
	params []byte
	item   itemParams
	meta   meta
	// result and err are those of a response: JSON, and empty when absent.
	result, err []byte
	// bad says why the message cannot be served; nil when it can.
	bad *fault
}

func (m *message) isNotification() bool { return len(m.id) == 0 }

// isOdd reports whether the message is a notification in good order but for its
// params. Who sent it waits for nothing.
func (m *message) hasBadParams() bool { return m.bad != nil && m.isNotification() && m.method != "" }

func (m *message) isResponse() bool { return m.method == "" }

// parse lets text through the gate and reads the messages it holds: one, or
// those of a batch. Each says for itself whether it can be served; the fault is
// that of the text as a whole.
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

// gateFault maps a refusal of the gate: what breaks the grammar is a parse
// error; what is over a limit, or read differently by different readers, is an
// invalid request.
func guardFault(err error) *fault {
	var refused *jsonguard.Error
	if errors.As(err, &refused) {
		switch refused.Kind {
		case jsonguard.TooLarge:
			return newFault(codeInvalidRequest, TooLarge, refused.Error())
		case jsonguard.TooDeep, jsonguard.TooMany, jsonguard.DuplicateKey, jsonguard.BadNumber:
			return malformed(refused.Error())
		}
	}
	return newFault(codeParse, Malformed, "parse error: "+err.Error())
}

// parse reads the message from its text, once from its begin to its end. A bad
// one still has the id that was read.
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

// setID takes an id that the protocol allows (2026-07-28 basic/index, Requests).
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

// meta is what the _meta of a request says. All members but version are JSON,
// and empty when absent.
type meta struct {
	version       string
	clientInfo    []byte
	capabilities  []byte
	logLevel      []byte
	agent         []byte
	progressToken []byte
	// traceparent and tracestate are those of W3C Trace Context, as the caller says.
	traceparent, tracestate []byte
	// bad is the first mistake in it; nil when there is none.
	bad *fault
}

// parse reads params._meta, which is the next value.
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
