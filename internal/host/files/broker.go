// Package files reads and writes files for scripts, only below the directory of a grant.
//
// A [GrantedRoot] is one grant with the usage of one run, and a [Broker] carries out
// operations. Every operation opens the root directory anew: it checks the path before anything
// is opened (see [GrantedRoot.Parse]), and checks opened files again. Links are not followed.
// Only regular files on the file system of the root, without other hard links, are read,
// written and removed. [os.Root] keeps an operation below the root regardless of concurrent
// changes.
//
// A file is written to a temporary file in the same directory and renamed when it is complete,
// so that readers never see part of it.
package files

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"strings"
	"syscall"

	"github.com/mcpd/mcpd/internal/language/grant"
	"github.com/mcpd/mcpd/scripting"
)

// Broker carries out file operations. It is stateless and safe for concurrent use.
type Broker struct {
	// Redact redacts data that is read.
	Redact func([]byte) []byte
	// Logger receives messages for the operator.
	Logger *slog.Logger
}

// Do carries out an operation by its method name and returns the result, both JSON:
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
// The error is always a [*scripting.HostError]: INVALID for a malformed operation, OUTSIDE_ROOT
// and NOT_GRANTED for one outside of the grant, NOT_FOUND, DENIED for anything but a regular
// file, TOO_LARGE, TIMEOUT, and UNAVAILABLE for failures of the system.
func (b *Broker) Do(ctx context.Context, f *GrantedRoot, method string, payload []byte) ([]byte, error) {
	r, err := f.Parse(method, payload)
	if err != nil {
		return nil, err
	}
	answer, err := b.do(ctx, f, r)
	if err != nil {
		b.Logger.DebugContext(ctx, "file operation failed", slog.String("grant", f.Grant.Name), slog.String("operation", method), slog.Any("error", err))
		return nil, explain(ctx, r.given, err)
	}
	encoded, err := json.Marshal(answer)
	if err != nil {
		return nil, newHostError(scripting.Unavailable, r.given, "the result cannot be encoded")
	}
	return encoded, nil
}

func (b *Broker) do(ctx context.Context, f *GrantedRoot, r *Operation) (any, error) {
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

// MockAnswer returns the result of an operation on mocked content: the content of the file, or
// for list and stat the JSON of a mock (names and entries, or some of type, size and modified).
func (g *GrantedRoot) MockAnswer(q *Operation, content []byte) ([]byte, error) {
	answer, err := g.mockAnswer(q, content)
	if err != nil {
		return nil, err
	}
	encoded, err := json.Marshal(answer)
	if err != nil {
		return nil, newHostError(scripting.Unavailable, q.given, "the mock cannot be encoded")
	}
	return encoded, nil
}

func (g *GrantedRoot) mockAnswer(q *Operation, content []byte) (any, error) {
	switch q.Method {
	case "list":
		return mockList(q, content)
	case "stat":
		d := statAnswer{}
		if err := json.Unmarshal(content, &d); err != nil {
			return nil, newHostError(scripting.Unavailable, q.given, "the mock of stat must be an object with some of type, size and modified")
		}
		d.Type = cmp.Or(d.Type, typeFile)
		return d, nil
	case "readText", "readBytes", "lines":
		var lines []string
		if q.Method == "lines" && json.Unmarshal(content, &lines) == nil {
			content = nil
			for _, line := range lines {
				content = append(append(content, line...), '\n')
			}
		}
		return g.read(context.Background(), bytes.NewReader(content), int64(len(content)), q, func(b []byte) []byte { return b })
	}
	return struct{}{}, nil
}

func mockList(q *Operation, content []byte) (any, error) {
	var items []json.RawMessage
	err := json.Unmarshal(content, &items)
	entries := []entry{}
	for _, item := range items {
		e := entry{Type: typeFile}
		if json.Unmarshal(item, &e.Name) != nil {
			err = cmp.Or(err, json.Unmarshal(item, &e))
		}
		entries = append(entries, e)
	}
	if err != nil {
		return nil, newHostError(scripting.Unavailable, q.given, "the mock of list must be a list of names, or of { name, type }")
	}
	return listAnswer{entries}, nil
}

// maxQuotedPath bounds paths that a message repeats, in bytes. Longer ones are not repeated: a
// redactor would not recognize part of a secret.
const maxQuotedPath = 200

// newHostError returns an error for the script. given is the path as the script passed it; the
// arguments are only numbers of the grant.
func newHostError(code, given, format string, args ...any) *scripting.HostError {
	message := fmt.Sprintf(format, args...)
	if len(given) > maxQuotedPath {
		given = fmt.Sprintf("a path of %d bytes", len(given))
	}
	if given != "" {
		message = strings.ToValidUTF8(given, "�") + ": " + message
	}
	return &scripting.HostError{Code: code, Message: message}
}

// explain converts a system error to an error for the script.
func explain(ctx context.Context, given string, err error) error {
	var known *scripting.HostError
	switch {
	case errors.As(err, &known):
		return known
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return newHostError(scripting.TimedOut, given, "the file operation did not finish in time")
	case ctx.Err() != nil:
		return newHostError(scripting.Unavailable, given, "the call was cancelled")
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return newHostError(scripting.NotFound, given, "the file or directory does not exist")
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return newHostError(scripting.Denied, given, "the server has no permission for this on the file")
	case errors.Is(err, syscall.ENAMETOOLONG):
		return newHostError(scripting.Invalid, given, "the path is too long for the system")
	}
	return newHostError(scripting.Unavailable, given, "the file cannot be used now")
}

// OpenFile opens a file below the root of a grant for reading, under the same rules as
// operations. It also returns the canonical path below the root. It fails with the message busy
// if a non-empty file with one of the suffixes is next to it. The error is a
// [*scripting.HostError].
func OpenFile(g grant.FS, given, busy string, suffixes ...string) (file *os.File, name string, err error) {
	q := &Operation{Method: "open", given: given}
	if q.Path, err = parsePath(given, g.Root, g.ResolvedPath); err != nil {
		return nil, "", err
	}
	root, err := openRoot(g)
	if err != nil {
		return nil, "", explain(context.Background(), given, err)
	}
	defer root.Close()
	file, _, err = root.open(q, openNonBlocking, root.checkRegular)
	if err != nil {
		return nil, "", explain(context.Background(), given, err)
	}
	for _, suffix := range suffixes {
		if info, err := root.Lstat(q.Path + suffix); err == nil && info.Size() > 0 {
			file.Close()
			return nil, "", newHostError(scripting.Unavailable, given, "%s", busy)
		}
	}
	return file, q.Path, nil
}

// CheckPath returns the canonical path below the root of a grant. It makes the checks of
// [OpenFile] that need no disk access.
func CheckPath(g grant.FS, given string) (string, error) {
	return parsePath(given, g.Root, g.ResolvedPath)
}
