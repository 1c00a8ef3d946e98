package audit

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"strconv"
	"time"

	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/base/jsonguard"
	"github.com/mcpd/mcpd/internal/base/jsontext"
	"github.com/mcpd/mcpd/internal/base/redact"
)

// maxValues is the maximum size of captured arguments, in bytes of JSON.
const maxValues = 64 << 10

// timeForm is RFC 3339 in UTC with nanoseconds of fixed width.
const timeForm = "2006-01-02T15:04:05.000000000Z07:00"

// encoder writes the members of one line, except the members of the chain. It is reused, so
// that a record needs no allocation.
type encoder struct {
	body      []byte
	canonical []byte
	walk      jsonWalker
	digest    hash.Hash
	sum       []byte
	redactor  redact.Redactor // nil redacts nothing
	pen       valueEncoder
}

func newEncoder(digestKey []byte, redactor redact.Redactor) *encoder {
	return &encoder{digest: hmac.New(sha256.New, digestKey), sum: make([]byte, 0, sha256.Size), redactor: redactor, pen: valueEncoder{redactor}}
}

func (e *encoder) begin(kind string, now time.Time) {
	e.body = append(e.body[:0], `"time":"`...)
	e.body = now.UTC().AppendFormat(e.body, timeForm)
	e.body = append(append(append(e.body, `","kind":"`...), kind...), '"')
}

// text adds a member, unless its value is empty.
func (e *encoder) text(name, value string) {
	if value != "" {
		e.name(name)
		e.body = e.pen.text(e.body, value)
	}
}

// untrustedText adds untrusted text. It redacts before it truncates, because a truncated secret
// is not recognized.
func (e *encoder) untrustedText(name, value string) {
	if e.redactor != nil {
		value = e.redactor.Redact(value)
	}
	e.text(name, value)
}

// redactFrom redacts the last JSON value, which starts at from. Codes, times and numbers of
// the log itself are not redacted.
func (e *encoder) redactFrom(from int) {
	if e.redactor == nil {
		return
	}
	value := e.body[from:]
	shown := e.redactor.RedactJSON(value)
	switch {
	case len(shown) == len(value) && &shown[0] == &value[0]:
	case jsonguard.Check(shown, argumentLimits()) == nil:
		e.body = appendShown(e.body[:from], shown)
	case value[0] == '{': // two names became one
		e.body = append(e.body[:from], `{"`+ellipsis+`":`+mark+`}`...)
	default:
		e.body = append(e.body[:from], mark...)
	}
}
func (e *encoder) name(name string) {
	e.body = append(append(append(e.body, ',', '"'), name...), '"', ':')
}

// number adds a member, unless its value is 0.
func (e *encoder) number(name string, value int) {
	if value != 0 {
		e.name(name)
		e.body = strconv.AppendInt(e.body, int64(value), 10)
	}
}

// flag adds a member if the value is true.
func (e *encoder) flag(name string, value bool) {
	if value {
		e.name(name)
		e.body = append(e.body, "true"...)
	}
}

func (e *encoder) event(v *Event, now time.Time) {
	e.begin(eventKind, now)
	e.text("event.name", v.Name)
	if len(v.Attributes) > 0 {
		e.name("attributes")
		from := len(e.body)
		e.body = e.pen.pairs(e.body, v.Attributes)
		e.redactFrom(from)
	}
}

func (e *encoder) outcome(r *Record, now time.Time) {
	e.begin(outcomeKind, now)
	e.call(r)
	e.text("outcome", r.Outcome)
	if r.Outcome != OutcomeOK && r.Outcome != OutcomeInputRequired && r.Outcome != OutcomeDryRun {
		e.text("error.type", r.Outcome)
	}
	e.untrustedText("error.message", r.Message)
	e.text("cancelled_by", r.CancelledBy)
	e.untrustedText("cancel_reason", r.CancelReason)
	e.text("denied_by", r.DeniedBy)
	e.flag("limited", r.Limited)
	e.flag("declined", r.Declined)
	e.flag("cached", r.Cached)
	e.name("duration_ms")
	e.body = appendFloat(e.body, float64(r.Duration.Microseconds())/1000)
}

// call writes the members that intents and outcomes share. Names with dots follow the
// OpenTelemetry conventions for MCP and generative AI where these exist.
func (e *encoder) call(r *Record) {
	e.text("call_id", r.Call)
	e.text("root_id", r.Root)
	e.text("parent_id", r.Parent)
	e.number("leg", r.Leg)
	e.number("depth", r.Depth)
	e.text("via", r.Via)
	e.text("alias", r.Alias)
	e.text("trace_id", r.TraceID)
	e.text("span_id", r.SpanID)
	e.text("mcp.method.name", r.Method)
	e.text("called", r.Kind)
	e.untrustedText(nameMember(r.Kind), r.Name)
	e.untrustedText("mcp.resource.uri", r.URI)
	e.text("revision", r.Revision)
	e.text("definition", r.Definition)
	e.caller(&r.Caller)
	e.arguments(r)
	e.approval(r.Approval)
}

// nameMember returns the member for the name of the called item.
func nameMember(kind string) string {
	switch kind {
	case "tool":
		return "gen_ai.tool.name"
	case "prompt":
		return "gen_ai.prompt.name"
	}
	return "name"
}

func (e *encoder) caller(c *identity.Caller) {
	e.name("principal")
	from := len(e.body)
	e.body = append(e.body, `{"id":`...)
	e.body = e.pen.text(e.body, c.Principal.ID)
	e.text("kind", string(c.Principal.Kind))
	e.text("issuer", c.Principal.Issuer)
	e.name("scopes")
	e.body = e.pen.texts(e.body, c.Principal.Scopes)
	e.name("groups")
	e.body = e.pen.texts(e.body, c.Principal.Groups)
	e.name("claims")
	e.body = e.pen.object(e.body, c.Principal.Claims, maxValueDepth, len(e.body)+maxClaims)
	e.body = append(e.body, '}')
	e.redactFrom(from)
	e.name("agent")
	from = len(e.body)
	e.body = append(e.body, `{"claimed":{"agent_id":`...)
	e.body = e.pen.text(e.body, c.Agent.AgentID)
	e.text("model", c.Agent.Model)
	if len(c.Agent.Metadata) > 0 {
		e.name("metadata")
		e.body = e.pen.pairs(e.body, c.Agent.Metadata)
	}
	e.body = strconv.AppendBool(append(e.body, `},"verified":`...), c.Agent.Verified)
	e.body = append(e.body, '}')
	e.redactFrom(from)
	e.untrustedText("request_id", c.Agent.RequestID)
	e.text("client.address", c.Source.IP)
	e.text("listener", c.Source.Listener)
	e.text("mcp.session.id", c.Source.Session)
}

// arguments writes the structure and the digest of the arguments. Invalid JSON has no
// structure, and a digest of its bytes.
func (e *encoder) arguments(r *Record) {
	if len(r.Arguments) > 0 {
		e.name("arguments")
		e.body = append(e.body, `{"shape":`...)
		if jsonguard.Check(r.Arguments, argumentLimits()) == nil {
			e.reset(r.Arguments)
			from := len(e.body)
			e.body = e.walk.shape(e.body, maxShapeDepth, from+maxShape)
			e.redactFrom(from)
			e.reset(r.Arguments)
			e.canonical = e.walk.canonical(e.canonical[:0])
		} else {
			e.body = append(e.body, `"not JSON"`...)
			e.canonical = append(e.canonical[:0], r.Arguments...)
		}
		e.body = append(e.body, `,"digest":"`...)
		e.keyedDigest(e.canonical)
		e.body = append(e.body, `"}`...)
	}
	if len(r.Values) > 0 {
		e.values(r.Values)
	}
}

// keyedDigest appends the keyed digest of data that must not be guessed without the key.
func (e *encoder) keyedDigest(what []byte) {
	e.digest.Reset()
	e.digest.Write(what)
	e.sum = e.digest.Sum(e.sum[:0])
	e.body = hex.AppendEncode(append(e.body, "hmac-sha256:"...), e.sum)
}

// values writes captured arguments, unless they are too long.
func (e *encoder) values(values []byte) {
	e.name("gen_ai.tool.call.arguments")
	if len(values) > maxValues || jsonguard.Check(values, argumentLimits()) != nil {
		e.body = append(e.body, `"`+ellipsis+`"`...)
		return
	}
	e.reset(values)
	e.walk.masked = true
	e.canonical = e.walk.canonical(e.canonical[:0])
	from := len(e.body)
	e.body = appendShown(e.body, e.canonical)
	e.redactFrom(from)
}

func (e *encoder) reset(raw []byte) {
	e.walk.in, e.walk.masked = jsontext.At(raw), false
	e.walk.members = e.walk.members[:0]
}
