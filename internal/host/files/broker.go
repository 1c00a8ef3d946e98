package files

import (
	"context"
	"encoding/json"
	"log/slog"

	"github.com/mcpd/mcpd/scripting"
)

// Broker does what scripts ask of files. It keeps nothing between two
// operations, and is safe for concurrent use.
type Broker struct {
	// Redact takes what no script may see out of what is read.
	Redact func([]byte) []byte
	// Logger gets what the operator should know.
	Logger *slog.Logger
}

// Do does the operation that a script asks for by the name of its method, and
// returns the answer, both JSON:
//
//	readText    {"path","max","tail"}                  {"text"}
//	readBytes   {"path","max","tail"}                  {"data64"}
//	lines       {"path","from","max"}                  {"lines":[text]}
//	writeText   {"path","text" | "data64"}             {}
//	writeBytes  {"path","text" | "data64"}             {}
//	list        {"path"}                               {"entries":[{"name","type"}]}
//	stat        {"path"}                               {"type","size","modified"}
//	remove      {"path"}                               {}
//
// The error is always a [*scripting.HostError]: INVALID for what is malformed,
// OUTSIDE_ROOT and NOT_GRANTED for what the grant does not cover, NOT_FOUND,
// DENIED for what is no plain file, TOO_LARGE, TIMEOUT, and UNAVAILABLE for what
// the system does not do.
func (b *Broker) Do(ctx context.Context, f *Folder, method string, payload []byte) ([]byte, error) {
	r, err := f.Parse(method, payload)
	if err != nil {
		return nil, err
	}
	answer, err := b.do(ctx, f, r)
	if err != nil {
		b.Logger.DebugContext(ctx, "a file operation failed", slog.String("grant", f.Grant.Name), slog.String("operation", method), slog.Any("error", err))
		return nil, explain(ctx, r.given, err)
	}
	encoded, err := json.Marshal(answer)
	if err != nil {
		return nil, fault(scripting.Unavailable, r.given, "the file cannot be told of")
	}
	return encoded, nil
}

func (b *Broker) do(ctx context.Context, f *Folder, r *Request) (any, error) {
	root, err := openRoot(f.Grant)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	switch r.Method {
	case "list":
		return f.list(ctx, root, r, b.Redact)
	case "stat":
		return root.stat(r)
	case "remove":
		return struct{}{}, root.remove(r)
	case "writeText", "writeBytes":
		return struct{}{}, f.write(ctx, root, r)
	}
	return f.readFile(ctx, root, r, b.Redact)
}
