package files

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/mcpd/mcpd/internal/language/grant"
	"github.com/mcpd/mcpd/scripting"
)

type root struct {
	*os.Root
	device uint64
}

// openRoot opens the folder of a grant where it was when the grant was judged,
// and refuses it when a link has come to stand in the way since.
func openRoot(g grant.FS) (*root, error) {
	const away = "the root of the grant is not where it was when the tools were loaded"
	if g.ResolvedPath == "" {
		return nil, fault(scripting.NotFound, "", "the root of the grant does not exist")
	}
	info, err := os.Lstat(g.ResolvedPath)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fault(scripting.NotFound, "", "the root of the grant does not exist")
	case err != nil:
		return nil, err
	case !info.IsDir():
		return nil, fault(scripting.Denied, "", "the root of the grant is no folder, or a link")
	}
	opened, err := os.OpenRoot(g.ResolvedPath)
	if err != nil {
		return nil, err
	}
	real, err := filepath.EvalSymlinks(g.ResolvedPath)
	now, nowErr := opened.Stat(".")
	if err != nil || nowErr != nil || real != g.ResolvedPath || !os.SameFile(info, now) {
		return nil, errors.Join(fault(scripting.Denied, "", away), opened.Close())
	}
	return &root{Root: opened, device: deviceOf(now)}, nil
}

// look describes what a path leads to, itself or the link that has its name.
// What stands above it must be folders of the same file system.
func (r *root) look(q *Request) (fs.FileInfo, error) {
	for i, c := range q.Path {
		if c != '/' {
			continue
		}
		info, err := r.Lstat(q.Path[:i])
		if err != nil {
			return nil, err
		}
		if err := r.folder(q, info); err != nil {
			return nil, err
		}
	}
	return r.Lstat(q.Path)
}

func (r *root) folder(q *Request, info fs.FileInfo) error {
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		return fault(scripting.Denied, q.given, "the path passes a link, and links are not followed")
	case !info.IsDir():
		return fault(scripting.NotFound, q.given, "there is no such folder")
	case deviceOf(info) != r.device:
		return fault(scripting.Denied, q.given, "it is on another file system than the root")
	}
	return nil
}

// plain refuses what is no regular file of the file system of the root, or has
// another name, which may lie anywhere.
func (r *root) plain(q *Request, info fs.FileInfo) error {
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		return fault(scripting.Denied, q.given, "it is a link, and links are not followed")
	case info.IsDir():
		return fault(scripting.Denied, q.given, "it is a folder")
	case !info.Mode().IsRegular():
		return fault(scripting.Denied, q.given, "it is no regular file")
	case deviceOf(info) != r.device:
		return fault(scripting.Denied, q.given, "it is on another file system than the root")
	case namesOf(info) > 1: // none is left of a file that another has replaced meanwhile
		return fault(scripting.Denied, q.given, "the file has another name, too (a hard link)")
	}
	return nil
}

// open opens what a path leads to for reading, and makes sure that it is what
// was looked at: accept judges it before and after.
func (r *root) open(q *Request, flags int, accept func(*Request, fs.FileInfo) error) (file *os.File, info fs.FileInfo, err error) {
	before, err := r.look(q)
	if err != nil {
		return nil, nil, err
	}
	if err := accept(q, before); err != nil {
		return nil, nil, err
	}
	file, err = r.OpenFile(q.Path, os.O_RDONLY|flags, 0)
	if err != nil {
		return nil, nil, err
	}
	info, err = file.Stat()
	if err == nil {
		err = accept(q, info)
	}
	if err == nil && !os.SameFile(before, info) {
		err = fault(scripting.Unavailable, q.given, "another file has taken its name; try again")
	}
	if err != nil {
		return nil, nil, errors.Join(err, file.Close())
	}
	return file, info, nil
}

func (r *root) remove(q *Request) error {
	info, err := r.look(q)
	if err == nil {
		err = r.plain(q, info)
	}
	if err == nil {
		err = r.Remove(q.Path)
	}
	return err
}

type described struct {
	Type     string `json:"type"`
	Size     int64  `json:"size"`
	Modified int64  `json:"modified"` // milliseconds since 1970
}

func (r *root) stat(q *Request) (any, error) {
	info, err := r.look(q)
	if err != nil {
		return nil, err
	}
	d := described{Type: typeOf(info.Mode()), Modified: info.ModTime().UnixMilli()}
	switch d.Type {
	case typeFolder:
		return d, r.folder(q, info)
	case typeFile:
		d.Size = info.Size()
		return d, r.plain(q, info)
	}
	return d, nil
}

// The types of what a folder holds.
const (
	typeFile   = "file"
	typeFolder = "folder"
	typeOther  = "other"
)

func typeOf(mode fs.FileMode) string {
	switch {
	case mode.IsRegular():
		return typeFile
	case mode.IsDir():
		return typeFolder
	}
	return typeOther
}

// Folder is a grant, with what one run has used of it. It holds nothing open,
// and is safe for concurrent use.
type Folder struct {
	Grant grant.FS
	// maxFile and maxTotal are the bounds of the grant, in bytes.
	maxFile, maxTotal int64
	maxEntries        int // of a folder that is listed

	mu   sync.Mutex
	used int64 // of maxTotal
}

// Open returns the folder of a grant, of which nothing is used yet.
func Open(g grant.FS) *Folder {
	f := &Folder{Grant: g, maxEntries: 10_000}
	f.maxFile, f.maxTotal = g.Limits()
	return f
}

// take counts bytes that are about to be read or written.
func (f *Folder) take(given string, n int64) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if n > f.maxTotal-f.used {
		return fault(scripting.TooLarge, given, "one call reads and writes at most %d bytes here (max_total)", f.maxTotal)
	}
	f.used += n
	return nil
}

// The bounds of a path.
const (
	maxPath  = 4096
	maxName  = 255
	maxDepth = 64
)

// What files are called while they are written. No script reaches them.
const (
	tempPrefix = ".mcpd-"
	tempSuffix = ".tmp"
)

// parsePath returns the path below the root that a script means: in canonical
// form, with forward slashes, "." for the root itself. It looks at no file.
func parsePath(given string, roots ...string) (string, error) {
	switch {
	case given == "":
		return "", fault(scripting.Invalid, "", "the path is empty")
	case len(given) > maxPath:
		return "", fault(scripting.Invalid, "", "the path has more than %d bytes", maxPath)
	case strings.ContainsFunc(given, unfit) || !utf8.ValidString(given):
		return "", fault(scripting.Invalid, given, "a path holds no control characters and no broken ones")
	case strings.Contains(given, `\`) || hasDrive(given):
		return "", fault(scripting.Invalid, given, "a path has forward slashes, and no drive")
	case slices.Contains(strings.Split(given, "/"), ".."):
		return "", fault(scripting.OutsideRoot, given, "a path does not go up with ..")
	}
	name := path.Clean(given)
	if path.IsAbs(name) {
		below := false
		for _, root := range roots {
			if rest, ok := cutRoot(name, filepath.ToSlash(root)); ok {
				name, below = rest, true
				break
			}
		}
		if !below {
			return "", fault(scripting.OutsideRoot, given, "the path is outside of the root")
		}
	}
	return name, checkNames(given, name)
}

// checkNames refuses elements of a path that some system reads in another way
// than they are written.
func checkNames(given, name string) error {
	if name == "." {
		return nil
	}
	names := strings.Split(name, "/")
	if len(names) > maxDepth {
		return fault(scripting.Invalid, given, "the path has more than %d elements", maxDepth)
	}
	for _, one := range names {
		if problem := checkName(one); problem != "" {
			return fault(scripting.Invalid, given, "%s", problem)
		}
	}
	if !filepath.IsLocal(filepath.FromSlash(name)) {
		return fault(scripting.Invalid, given, "this system has no such file names")
	}
	return nil
}

func checkName(name string) string {
	switch {
	case len(name) > maxName:
		return "a name in a path has at most 255 bytes"
	case strings.HasSuffix(name, ".") || strings.HasSuffix(name, " "):
		return "a name in a path does not end with a dot or a space"
	case strings.HasPrefix(name, tempPrefix) && strings.HasSuffix(name, tempSuffix):
		return "names like " + tempPrefix + "*" + tempSuffix + " are of files that are being written"
	case !utf8.ValidString(name) || strings.ContainsFunc(name, unfit) || strings.ContainsAny(name, `/\`) || hasDrive(name):
		return "the name cannot be written in a path"
	}
	return ""
}

// unfit reports characters that nobody sees, or that stand for broken ones.
func unfit(r rune) bool {
	return r == utf8.RuneError || unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp)
}

// hasDrive reports a path that begins like C: on Windows.
func hasDrive(p string) bool {
	return len(p) > 1 && p[1] == ':' && (p[0]|0x20 >= 'a' && p[0]|0x20 <= 'z')
}

// cutRoot returns the rest of a path below a root, by whole elements.
func cutRoot(name, root string) (rest string, ok bool) {
	if root == "" || !path.IsAbs(root) {
		return "", false
	}
	if name == root {
		return ".", true
	}
	return strings.CutPrefix(name, strings.TrimSuffix(root, "/")+"/")
}
