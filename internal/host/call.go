package host

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"time"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/base/observe"
	"github.com/mcpd/mcpd/internal/base/redact"
	"github.com/mcpd/mcpd/internal/host/files"
	"github.com/mcpd/mcpd/internal/host/oauth"
	"github.com/mcpd/mcpd/scripting"
)

// Call is the host of one run of one body.
type Call struct {
	Brokers
	// Grants are nil of a body that is granted nothing.
	*Grants
	// folders are those of the grants, which count what the run has read and written.
	folders []*files.Folder
	// Tools calls the tools that the body may call; nil where there are none.
	Tools Tools
	// Ends is when the run is over: what a broker does for it ends then, also where
	// the context of an operation knows no deadline. The zero time is never.
	Ends time.Time
	// Caller is for whom the body runs; zero of one that runs for nobody, which has
	// neither the values nor the tokens of any principal.
	Caller identity.Caller
	// SecretKeys name the definitions of secrets that hold for this run.
	SecretKeys map[string]string
	Asking     Asking
	// What, Name and ID tell the operator who speaks: What is "tool" or "hook", and ID that
	// of the call. RequestID is that of the request which the call is of, also where the
	// body runs for nobody.
	What, Name, ID, RequestID string
	// Emit receives what the body tells its caller; nil drops it.
	Emit call.Emitter
	// Debug says that the caller hears records of the level debug, too.
	Debug bool
	// Hide takes sensitive arguments out of what the body logs; nil hides nothing.
	Hide *redact.Text
	// Span is that of the run, and Metrics count its host calls; both do nothing where
	// nobody asked for it.
	Span    observe.Span
	Metrics observe.Metrics
	// Mocks answer instead of the network when the run is a test. What a test
	// logs reaches nobody.
	Mocks *Mocks
}

// The payloads of the operations that the host understands (package scripting).
type (
	logPayload struct {
		Level   string          `json:"level"`
		Message string          `json:"message"`
		Fields  json.RawMessage `json:"fields"`
		Trace   string          `json:"trace"`
	}
	progressPayload struct {
		Done    float64  `json:"done"`
		Total   *float64 `json:"total"`
		Message string   `json:"message"`
	}
	// grantPayload names the grant of an operation: Grant, the Tool to be called, or the
	// Module with its Function.
	grantPayload struct {
		Grant     string          `json:"grant"`
		Tool      string          `json:"tool"`
		Module    string          `json:"module"`
		Function  string          `json:"function"`
		Arguments json.RawMessage `json:"arguments"`
		// Consented says that the user was asked already about a request.
		Consented bool `json:"consented"`
	}
)

// Do answers one operation.
func (h *Call) Do(ctx context.Context, seq int, op string, payload []byte) ([]byte, error) {
	if !scripting.IsNotification(op) {
		ctx = observe.Request{ID: h.RequestID, Call: h.ID}.In(ctx) // for what is logged
		if h.Metrics != nil {
			return h.observed(ctx, op, payload)
		}
	}
	answer, err := h.do(ctx, op, payload)
	return answer, forRequestsOnly(op, err)
}

// observed is Do for a host call that is told of.
func (h *Call) observed(ctx context.Context, op string, payload []byte) ([]byte, error) {
	began, span := time.Now(), h.Span.Client(op[:min(len(op), maxOperation)])
	answer, err := h.do(span.In(ctx), op, payload)
	err = forRequestsOnly(op, err)
	outcome := outcomeOf(err)
	if outcome != "ok" && outcome != "suspended" {
		span.Fail(outcome)
	}
	span.End()
	h.Metrics.HostCallEnded(op, outcome, time.Since(began))
	return answer, err
}

// maxOperation is how much of the name of an operation names a span, in bytes: it comes
// from a process that may have been taken over.
const maxOperation = 64

// outcomeOf says for metrics what became of a host call.
func outcomeOf(err error) string {
	var refused *scripting.HostError
	switch {
	case err == nil:
		return "ok"
	case errors.Is(err, scripting.ErrSuspended):
		return "suspended"
	case errors.As(err, &refused):
		return refused.Code
	}
	return scripting.Unavailable
}

func (h *Call) do(ctx context.Context, op string, payload []byte) ([]byte, error) {
	switch op {
	case scripting.OpLog, scripting.OpConsole:
		return nil, h.log(ctx, op, payload)
	case scripting.OpProgress:
		return nil, h.progress(payload)
	case scripting.OpDisconnect:
		if h.Emit != nil {
			h.Emit.CloseStream()
		}
		return nil, nil
	case scripting.OpAsk:
		return nil, h.ask(payload)
	}
	if h.Grants == nil {
		return nil, &scripting.HostError{Code: scripting.NotGranted, Message: "nothing is granted"}
	}
	switch op {
	case scripting.OpEnv:
		return h.environment(payload)
	case scripting.OpSecret:
		return h.secret(ctx, payload)
	case scripting.OpCall, scripting.OpModule, "http.request", "exec.run", "kv.get", "kv.put", "kv.delete", "kv.cas", "kv.list", "kv.incr":
	default:
		if !strings.HasPrefix(op, "fs.") && !strings.HasPrefix(op, "sql.") {
			return nil, &scripting.HostError{Code: scripting.NotGranted, Message: "this server has no operation " + op}
		}
	}
	return h.granted(ctx, op, payload)
}

// granted does an operation under the grant that its payload names. A call that has
// ended begins no program, no function and no other call, and changes no kept value.
func (h *Call) granted(ctx context.Context, op string, payload []byte) ([]byte, error) {
	var p grantPayload
	if err := json.Unmarshal(payload, &p); err != nil {
		return nil, &scripting.HostError{Code: scripting.Invalid, Message: "the operation cannot be read"}
	}
	group, method, _ := strings.Cut(op, ".")
	switch group {
	case "http":
		return h.request(ctx, p, payload)
	case "fs":
		return h.file(ctx, p.Grant, method, payload)
	case "sql":
		return h.database(ctx, p.Grant, method, payload)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	switch group {
	case scripting.OpCall:
		return h.callTool(ctx, p)
	case scripting.OpModule:
		return h.module(ctx, p)
	case "exec":
		return h.execute(ctx, p.Grant, payload)
	}
	return h.keep(ctx, p.Grant, op, payload)
}

// log writes what a body logs to the log of the server, and passes records of the operation log on
// to the caller.
func (h *Call) log(ctx context.Context, op string, payload []byte) error {
	var record logPayload
	if err := json.Unmarshal(payload, &record); err != nil {
		return &scripting.HostError{Code: scripting.Invalid, Message: "a log record must be a level and a message"}
	}
	if h.Mocks != nil {
		return nil
	}
	message, fields := h.hidden(record.Message), record.Fields
	if h.Hide != nil {
		fields = h.Hide.HideJSON(fields, h.Secrets.Net())
	}
	fields = h.Secrets.RedactJSON(fields) // as text, too: a secret may be JSON itself
	if len(fields) == 0 || string(fields) == "null" {
		fields = nil
	}
	attrs := h.speaker()
	if fields != nil {
		attrs = append(attrs, slog.String("fields", string(fields)))
	}
	if record.Trace != "" { // clients are never told
		attrs = append(attrs, slog.String("trace", h.hidden(record.Trace)))
	}
	level := levelOf(record.Level)
	h.Logger.LogAttrs(h.Span.In(ctx), level.log, message, attrs...)
	if op == scripting.OpLog && h.Emit != nil {
		h.Emit.Log(level.mcp, message, fields)
	}
	return nil
}

// level is how severe a record is: for the log, and by its name in MCP (2026-07-28
// server/utilities/logging), which has more of them.
type level struct {
	log slog.Level
	mcp string
}

// levelOf returns a level by the name that bodies, or servers behind this one, have for it.
func levelOf(name string) level {
	switch name {
	case "debug":
		return level{slog.LevelDebug, name}
	case "notice":
		return level{slog.LevelInfo, name}
	case "warn", "warning":
		return level{slog.LevelWarn, "warning"}
	case "error", "critical", "alert", "emergency":
		return level{slog.LevelError, name}
	default:
		return level{slog.LevelInfo, "info"}
	}
}

func (h *Call) speaker() []slog.Attr {
	who := []slog.Attr{slog.String(h.What, h.Name), slog.String("call_id", h.ID)}
	if h.RequestID != "" {
		who = append(who, slog.String("request_id", h.RequestID))
	}
	return who
}

func (h *Call) progress(payload []byte) error {
	var p progressPayload
	if err := json.Unmarshal(payload, &p); err != nil {
		return &scripting.HostError{Code: scripting.Invalid, Message: "progress takes numbers and a message"}
	}
	if h.Emit == nil {
		return nil
	}
	h.Emit.Progress(p.Done, p.Total, h.hidden(p.Message))
	return nil
}

// hidden returns what a script writes without the values that are shown to nobody.
func (h *Call) hidden(text string) string {
	if h.Hide == nil {
		return h.Secrets.Redact(text)
	}
	return h.Hide.Hide(text, h.Secrets.Net())
}

func (h *Call) request(ctx context.Context, p grantPayload, payload []byte) ([]byte, error) {
	granted, ok := h.HTTP[p.Grant]
	if !ok {
		return nil, &scripting.HostError{Code: scripting.NotGranted, Message: "no http grant of this name"}
	}
	if h.Mocks != nil {
		if err := h.Egress.Check(granted, payload); err != nil {
			return nil, err
		}
		return h.Mocks.answer(p.Grant, payload)
	}
	return h.Egress.Do(oauth.For(ctx, h.visitor(p.Consented)), granted.WithSecrets(h.SecretKeys), payload)
}
