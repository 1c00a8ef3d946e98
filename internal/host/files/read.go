package files

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/mcpd/mcpd/scripting"
)

// chunk is the number of bytes between checks of the context.
const chunk = 256 << 10

func (g *GrantedRoot) readFile(ctx context.Context, root *openedRoot, q *Operation, redact func([]byte) []byte) (any, error) {
	file, info, err := root.open(q, openNonBlocking, root.checkRegular)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return g.read(ctx, file, info.Size(), q, redact)
}

// read reads a file up to size, the size when it was opened, even if it grows.
func (g *GrantedRoot) read(ctx context.Context, file io.ReaderAt, size int64, q *Operation, redact func([]byte) []byte) (any, error) {
	if q.Method == "lines" {
		return g.lines(ctx, file, size, q, redact)
	}
	from, to, err := g.window(size, q)
	if err != nil {
		return nil, err
	}
	data, err := g.readRange(ctx, file, from, to, q)
	if err != nil {
		return nil, err
	}
	if q.Method == "readBytes" {
		return struct {
			Data []byte `json:"data64"`
		}{redact(data)}, nil
	}
	if from > 0 {
		data = data[partialRunePrefix(data):]
	}
	if to < size {
		data = trimPartialRune(data)
	}
	return struct {
		Text string `json:"text"`
	}{strings.ToValidUTF8(string(redact(data)), "\ufffd")}, nil
}

func (g *GrantedRoot) window(size int64, q *Operation) (from, to int64, err error) {
	to = size
	switch {
	case q.max > 0:
		to = min(size, q.max)
	case q.tail > 0:
		from = max(0, size-q.tail)
	}
	if to-from > g.maxFile {
		return 0, 0, newHostError(scripting.TooLarge, q.given, "at most %d bytes of a file can be read (max_file); read a part of it with max, tail or lines", g.maxFile)
	}
	return from, to, nil
}

// readRange reads a range of a file. It returns less if the file was truncated.
func (g *GrantedRoot) readRange(ctx context.Context, file io.ReaderAt, from, to int64, q *Operation) ([]byte, error) {
	if err := g.charge(q.given, to-from); err != nil {
		return nil, err
	}
	data := make([]byte, to-from)
	for done := 0; done < len(data); {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		n, err := file.ReadAt(data[done:min(len(data), done+chunk)], from+int64(done))
		done += n
		if err == io.EOF {
			return data[:done], nil
		}
		if err != nil {
			return nil, err
		}
	}
	return data, nil
}

// partialRunePrefix returns the number of bytes at the start that belong to a character before
// it.
func partialRunePrefix(data []byte) int {
	n := 0
	for n < len(data) && n < utf8.UTFMax-1 && !utf8.RuneStart(data[n]) {
		n++
	}
	return n
}

// trimPartialRune removes an incomplete character from the end.
func trimPartialRune(data []byte) []byte {
	for n := 1; n < utf8.UTFMax && n <= len(data); n++ {
		if last := data[len(data)-n:]; utf8.RuneStart(last[0]) {
			if !utf8.FullRune(last) {
				return data[:len(data)-n]
			}
			break
		}
	}
	return data
}

type linesAnswer struct {
	Lines []string `json:"lines"`
}

// lines reads lines starting at a line number from 1.
func (g *GrantedRoot) lines(ctx context.Context, file io.ReaderAt, size int64, q *Operation, redact func([]byte) []byte) (any, error) {
	l := lineReader{folder: g, q: q, skip: max(q.from, 1) - 1, max: q.max}
	for at := int64(0); at < size && !l.full(); at += chunk {
		data, err := g.readRange(ctx, file, at, min(size, at+chunk), q)
		if err != nil {
			return nil, err
		}
		if err := l.add(data); err != nil {
			return nil, err
		}
		if len(data) == 0 {
			break
		}
	}
	return l.answer(redact), nil
}

// lineReader extracts lines from a file that is read in chunks.
type lineReader struct {
	folder    *GrantedRoot
	q         *Operation
	skip, max int64 // lines; max 0 means no limit
	// kept are the requested lines, and count the number of complete ones.
	kept  []byte
	count int64
}

func (l *lineReader) full() bool { return l.max > 0 && l.count >= l.max }

func (l *lineReader) add(data []byte) error {
	for len(data) > 0 && !l.full() {
		line, rest, complete := bytes.Cut(data, []byte("\n"))
		data = rest
		if l.skip > 0 {
			if complete {
				l.skip--
			}
			continue
		}
		l.kept = append(l.kept, line...)
		if complete {
			l.kept = append(l.kept, '\n')
			l.count++
		}
		if int64(len(l.kept)) > l.folder.maxFile {
			return newHostError(scripting.TooLarge, l.q.given, "at most %d bytes of a file can be read (max_file); read fewer lines at once with from and max", l.folder.maxFile)
		}
	}
	return nil
}

func (l *lineReader) answer(redact func([]byte) []byte) linesAnswer {
	lines := []string{}
	text := strings.ToValidUTF8(string(redact(l.kept)), "\ufffd")
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		lines = append(lines, strings.TrimSuffix(line, "\r"))
	}
	return linesAnswer{lines}
}

type entry struct {
	Name string `json:"name"`
	Type string `json:"type"`
}

type listAnswer struct {
	Entries []entry `json:"entries"`
}

// list lists a directory, sorted by name in bytewise order. It omits names that no path can
// contain, and redacts secrets in names.
func (g *GrantedRoot) list(ctx context.Context, root *openedRoot, q *Operation, redact func([]byte) []byte) (any, error) {
	folder, _, err := root.open(q, openNonBlocking|openDirectory, root.checkDir)
	if err != nil {
		return nil, err
	}
	defer folder.Close()
	entries, seen := []entry{}, 0
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		found, err := folder.ReadDir(1000)
		for _, e := range found {
			if checkName(e.Name()) == "" {
				entries = append(entries, entry{e.Name(), typeOf(e.Type())})
			}
		}
		if seen += len(found); seen > g.maxEntries {
			return nil, newHostError(scripting.TooLarge, q.given, "the directory has more than %d entries", g.maxEntries)
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
	}
	slices.SortFunc(entries, func(a, b entry) int { return strings.Compare(a.Name, b.Name) })
	for i := range entries {
		entries[i].Name = string(redact([]byte(entries[i].Name)))
	}
	return listAnswer{entries}, nil
}

// write writes a file to a temporary file, syncs it, and renames it.
func (g *GrantedRoot) write(ctx context.Context, root *openedRoot, q *Operation) error {
	mode := fs.FileMode(0o644)
	info, err := root.lstat(q)
	switch {
	case err == nil:
		if err := root.checkRegular(q, info); err != nil {
			return err
		}
		mode = info.Mode().Perm()
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	if err := g.charge(q.given, int64(len(q.content))); err != nil {
		return err
	}
	temp := path.Join(path.Dir(q.Path), tempPrefix+rand.Text()+tempSuffix)
	file, err := root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL|openNonBlocking, mode)
	if err != nil {
		return err
	}
	err = errors.Join(fill(ctx, file, q.content), file.Close())
	if err == nil {
		err = root.Rename(temp, q.Path)
	}
	if err != nil {
		// list omits temporary files, so one that cannot be removed does no harm.
		_ = root.Remove(temp)
	}
	return err
}

func fill(ctx context.Context, file *os.File, content []byte) error {
	for len(content) > 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := file.Write(content[:min(len(content), chunk)])
		if err != nil {
			return err
		}
		content = content[n:]
	}
	return file.Sync()
}
