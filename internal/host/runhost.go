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

// RunHost is the host of one run of one script.
type RunHost struct {
	Brokers
	// Grants are nil if the script has none.
	*Grants
	// folders are the roots of the fs grants. They count the bytes read and written by the run.
	folders []*files.GrantedRoot
	// Tools calls the tools of the CallableTools grant; nil if there are none.
	Tools Tools
	// Deadline is the end of the run. Broker operations end then, even if their context has no
	// deadline. Zero means none.
	Deadline time.Time
	// Caller is the caller of the script. It is zero if there is none; then the run has no
	// access to values and tokens of principals.
	Caller identity.Caller
	// SecretKeys are the keys of the secret definitions that apply to this run, by name.
	SecretKeys  map[string]string
	InputPolicy InputPolicy
	// CallerKind, Name and ID identify the script in logs. CallerKind is "tool" or "hook", and
	// ID is the call id. RequestID is the id of the request, also if there is no Caller.
	CallerKind, Name, ID, RequestID string
	// Emit receives notifications for the caller; nil drops them.
	Emit call.Emitter
	// Debug reports whether the caller receives debug logs.
	Debug bool
	// Sensitive redacts sensitive arguments in logs; nil redacts nothing.
	Sensitive *redact.Text
	// Span is the span of the run. Metrics counts host calls; it is nil without metrics.
	Span    observe.Span
	Metrics observe.Metrics
	// Mocks replace the brokers in tests. Logs of tests are dropped.
	Mocks *Mocks
	// Recorder records the operations of the run; nil records nothing.
	Recorder *Recorder
}

// The payloads of the operations (package scripting).
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
	// grantPayload names the grant of an operation: Grant, the Tool to call, or the Module with
	// its Function.
	grantPayload struct {
		Grant     string          `json:"grant"`
		Tool      string          `json:"tool"`
		Module    string          `json:"module"`
		Function  string          `json:"function"`
		Arguments json.RawMessage `json:"arguments"`
		// Consented reports whether the user was already prompted for this request.
		Consented bool `json:"consented"`
	}
)

// Do carries out one operation.
func (h *RunHost) Do(ctx context.Context, seq int, op string, payload []byte) (answer []byte, err error) {
	if h.Recorder != nil {
		n := h.Recorder.begin(h, op, payload)
		defer func() { h.Recorder.end(n, h, op, payload, answer, err) }()
	}
	if !scripting.IsNotification(op) {
		ctx = observe.Request{ID: h.RequestID, Call: h.ID}.In(ctx) // for log records
		if h.Metrics != nil || h.Span.Recorded() {
			return h.instrumented(ctx, op, payload)
		}
	}
	answer, err = h.do(ctx, op, payload)
	return answer, onlyForHTTP(op, err)
}

// instrumented is do with a span, and with metrics if there are any.
func (h *RunHost) instrumented(ctx context.Context, op string, payload []byte) ([]byte, error) {
	began, span := time.Now(), h.Span.Client(op[:min(len(op), maxOperation)])
	answer, err := h.do(span.In(ctx), op, payload)
	err = onlyForHTTP(op, err)
	outcome := outcomeOf(err)
	if outcome != "ok" && outcome != "suspended" {
		span.Fail(outcome)
	}
	span.End()
	if h.Metrics != nil {
		h.Metrics.HostCallEnded(op, outcome, time.Since(began))
	}
	return answer, err
}

// maxOperation bounds the name of an operation in a span, in bytes: it comes from a process
// that may be compromised.
const maxOperation = 64

// outcomeOf returns the metric label of a host call.
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

func (h *RunHost) do(ctx context.Context, op string, payload []byte) ([]byte, error) {
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
		return nil, h.requestInput(payload)
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
			return nil, &scripting.HostError{Code: scripting.NotGranted, Message: "unknown operation " + op}
		}
	}
	return h.granted(ctx, op, payload)
}

// granted carries out an operation under the grant in its payload. After the end of the call it
// starts no program, function or call, and changes no kv value.
func (h *RunHost) granted(ctx context.Context, op string, payload []byte) ([]byte, error) {
	var p grantPayload
	if err := json.Unmarshal(payload, &p); err != nil {
		return nil, &scripting.HostError{Code: scripting.Invalid, Message: "the operation cannot be read"}
	}
	group, method, _ := strings.Cut(op, ".")
	switch group {
	case "http":
		return h.httpRequest(ctx, p, payload)
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
	return h.kvOperation(ctx, p.Grant, op, payload)
}

// log writes a record to the log of the server, and sends records of the operation log to the
// caller.
func (h *RunHost) log(ctx context.Context, op string, payload []byte) error {
	var record logPayload
	if err := json.Unmarshal(payload, &record); err != nil {
		return &scripting.HostError{Code: scripting.Invalid, Message: "a log record must be a level and a message"}
	}
	if h.Mocks != nil {
		return nil
	}
	message, fields := h.redactText(record.Message), record.Fields
	if h.Sensitive != nil {
		fields = h.Sensitive.HideJSON(fields, h.Secrets.Matcher())
	}
	fields = h.Secrets.RedactJSON(fields) // as text, too: a secret may itself be JSON
	if len(fields) == 0 || string(fields) == "null" {
		fields = nil
	}
	attrs := h.logAttrs()
	if fields != nil {
		attrs = append(attrs, slog.String("fields", string(fields)))
	}
	if record.Trace != "" { // never sent to clients
		attrs = append(attrs, slog.String("trace", h.redactText(record.Trace)))
	}
	level := levelOf(record.Level)
	h.Logger.LogAttrs(h.Span.In(ctx), level.log, message, attrs...)
	if op == scripting.OpLog && h.Emit != nil {
		h.Emit.Log(level.mcp, message, fields)
	}
	return nil
}

// level is a log level and its name in MCP, which has more levels (2026-07-28
// server/utilities/logging).
type level struct {
	log slog.Level
	mcp string
}

// levelOf returns the level of a name from a script or an upstream server.
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

func (h *RunHost) logAttrs() []slog.Attr {
	who := []slog.Attr{slog.String(h.CallerKind, h.Name), slog.String("call_id", h.ID)}
	if h.RequestID != "" {
		who = append(who, slog.String("request_id", h.RequestID))
	}
	return who
}

func (h *RunHost) progress(payload []byte) error {
	var p progressPayload
	if err := json.Unmarshal(payload, &p); err != nil {
		return &scripting.HostError{Code: scripting.Invalid, Message: "progress takes numbers and a message"}
	}
	if h.Emit == nil {
		return nil
	}
	h.Emit.Progress(p.Done, p.Total, h.redactText(p.Message))
	return nil
}

// redactText redacts secrets and sensitive arguments in text of a script.
func (h *RunHost) redactText(text string) string {
	if h.Sensitive == nil {
		return h.Secrets.Redact(text)
	}
	return h.Sensitive.Hide(text, h.Secrets.Matcher())
}

func (h *RunHost) httpRequest(ctx context.Context, p grantPayload, payload []byte) ([]byte, error) {
	granted, ok := h.HTTP[p.Grant]
	if !ok {
		return nil, &scripting.HostError{Code: scripting.NotGranted, Message: "no http grant has this name"}
	}
	if h.Mocks != nil {
		if err := h.Egress.Check(granted, payload); err != nil {
			return nil, err
		}
		return h.Mocks.httpResponse(p.Grant, payload)
	}
	return h.Egress.Do(oauth.WithCaller(ctx, h.oauthCaller(p.Consented)), granted.WithSecrets(h.SecretKeys), payload)
}
