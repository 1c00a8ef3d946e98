package mcp

import "github.com/mcpd/mcpd/internal/base/jsontext"

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
