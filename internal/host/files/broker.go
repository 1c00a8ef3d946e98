// Package files reads and writes files for scripts, below the folder of a grant
// and nowhere else.
//
// A [Folder] is one grant with what one run has used of it, and a [Broker] does
// what a script asks of it. Every operation opens the folder anew and walks down
// from there: a path is checked before anything is opened (see [Folder.Parse]),
// and what was opened is checked again. No link is followed, and only regular
// files on the file system of the folder are read, written and removed that have
// no other name. [os.Root] keeps an operation below the folder whatever others
// do to it meanwhile.
//
// A file is written beside its place and put there when it is whole, so that
// nobody ever reads a part of it.
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

// Answer answers a request as if content were what the file holds, or for list
// and stat the JSON of a mock: names and objects like those of an entry, or some
// of type, size and modified. It is what tests get in the place of a disk.
func (f *Folder) Answer(q *Request, content []byte) ([]byte, error) {
	answer, err := f.pretend(q, content)
	if err != nil {
		return nil, err
	}
	encoded, err := json.Marshal(answer)
	if err != nil {
		return nil, fault(scripting.Unavailable, q.given, "the mock cannot be told")
	}
	return encoded, nil
}

func (f *Folder) pretend(q *Request, content []byte) (any, error) {
	switch q.Method {
	case "list":
		return pretendList(q, content)
	case "stat":
		d := described{}
		if err := json.Unmarshal(content, &d); err != nil {
			return nil, fault(scripting.Unavailable, q.given, "the mock of stat must be an object with some of type, size and modified")
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
		return f.read(context.Background(), bytes.NewReader(content), int64(len(content)), q, func(b []byte) []byte { return b })
	}
	return struct{}{}, nil
}

func pretendList(q *Request, content []byte) (any, error) {
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
		return nil, fault(scripting.Unavailable, q.given, "the mock of list must be a list of names, or of { name, type }")
	}
	return listed{entries}, nil
}

// maxShown bounds the paths that a message repeats, in bytes. Of longer ones it repeats
// nothing: a part of a value that is hidden would not be known.
const maxShown = 200

// fault makes the error that the script sees. given is the path as the script
// has passed it; the arguments are figures of the grant, or nothing else.
func fault(code, given, format string, args ...any) *scripting.HostError {
	message := fmt.Sprintf(format, args...)
	if len(given) > maxShown {
		given = fmt.Sprintf("a path of %d bytes", len(given))
	}
	if given != "" {
		message = strings.ToValidUTF8(given, "�") + ": " + message
	}
	return &scripting.HostError{Code: code, Message: message}
}

// explain turns a failure of the system into what the script may know of it.
func explain(ctx context.Context, given string, err error) error {
	var known *scripting.HostError
	switch {
	case errors.As(err, &known):
		return known
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fault(scripting.TimedOut, given, "the file was not done with in time")
	case ctx.Err() != nil:
		return fault(scripting.Unavailable, given, "the call was cancelled")
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return fault(scripting.NotFound, given, "there is no such file or folder")
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return fault(scripting.Denied, given, "the server may not do this to the file")
	case errors.Is(err, syscall.ENAMETOOLONG):
		return fault(scripting.Invalid, given, "the path is too long for the system")
	}
	return fault(scripting.Unavailable, given, "the file cannot be used now")
}

// OpenFile opens a file below the folder of a grant for reading, under the rules
// of all files, and returns its path below the folder as well, in canonical form.
// What stands beside it under the same name with one of the suffixes, and is not
// empty, keeps it from being opened: busy tells of it. The error is a
// [*scripting.HostError].
func OpenFile(g grant.FS, given, busy string, suffixes ...string) (file *os.File, name string, err error) {
	q := &Request{Method: "open", given: given}
	if q.Path, err = parsePath(given, g.Root, g.ResolvedPath); err != nil {
		return nil, "", err
	}
	root, err := openRoot(g)
	if err != nil {
		return nil, "", explain(context.Background(), given, err)
	}
	defer root.Close()
	file, _, err = root.open(q, noWait, root.plain)
	if err != nil {
		return nil, "", explain(context.Background(), given, err)
	}
	for _, suffix := range suffixes {
		if info, err := root.Lstat(q.Path + suffix); err == nil && info.Size() > 0 {
			file.Close()
			return nil, "", fault(scripting.Unavailable, given, "%s", busy)
		}
	}
	return file, q.Path, nil
}

// CheckPath returns the path below the folder of a grant that is meant, and
// refuses what [OpenFile] would refuse without a look at the disk.
func CheckPath(g grant.FS, given string) (string, error) {
	return parsePath(given, g.Root, g.ResolvedPath)
}
