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

	"github.com/mcpd/mcpd/internal/base/atomicfile"
	"github.com/mcpd/mcpd/internal/language/grant"
	"github.com/mcpd/mcpd/scripting"
)

type openedRoot struct {
	*os.Root
	device uint64
}

// openRoot opens the directory of a grant, and fails if it is not where it was when the grant
// was loaded.
func openRoot(g grant.FS) (*openedRoot, error) {
	const away = "the root of the grant has moved since the tools were loaded"
	if g.ResolvedPath == "" {
		return nil, newHostError(scripting.NotFound, "", "the root of the grant does not exist")
	}
	info, err := os.Lstat(g.ResolvedPath)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, newHostError(scripting.NotFound, "", "the root of the grant does not exist")
	case err != nil:
		return nil, err
	case !info.IsDir():
		return nil, newHostError(scripting.Denied, "", "the root of the grant is not a directory, or is a link")
	}
	opened, err := os.OpenRoot(g.ResolvedPath)
	if err != nil {
		return nil, err
	}
	real, err := filepath.EvalSymlinks(g.ResolvedPath)
	now, nowErr := opened.Stat(".")
	if err != nil || nowErr != nil || real != g.ResolvedPath || !os.SameFile(info, now) {
		return nil, errors.Join(newHostError(scripting.Denied, "", away), opened.Close())
	}
	return &openedRoot{Root: opened, device: deviceOf(now)}, nil
}

// lstat returns the file info of a path, without following a link. Its parents must be
// directories on the same file system.
func (r *openedRoot) lstat(q *Operation) (fs.FileInfo, error) {
	for i, c := range q.Path {
		if c != '/' {
			continue
		}
		info, err := r.Lstat(q.Path[:i])
		if err != nil {
			return nil, err
		}
		if err := r.checkDir(q, info); err != nil {
			return nil, err
		}
	}
	return r.Lstat(q.Path)
}

func (r *openedRoot) checkDir(q *Operation, info fs.FileInfo) error {
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		return newHostError(scripting.Denied, q.given, "the path contains a link, and links are not followed")
	case !info.IsDir():
		return newHostError(scripting.NotFound, q.given, "the directory does not exist")
	case deviceOf(info) != r.device:
		return newHostError(scripting.Denied, q.given, "it is on another file system than the root")
	}
	return nil
}

// checkRegular rejects everything but a regular file on the file system of the root without
// other hard links, which could be anywhere.
func (r *openedRoot) checkRegular(q *Operation, info fs.FileInfo) error {
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		return newHostError(scripting.Denied, q.given, "it is a link, and links are not followed")
	case info.IsDir():
		return newHostError(scripting.Denied, q.given, "it is a folder")
	case !info.Mode().IsRegular():
		return newHostError(scripting.Denied, q.given, "it is not a regular file")
	case deviceOf(info) != r.device:
		return newHostError(scripting.Denied, q.given, "it is on another file system than the root")
	case atomicfile.LinkCount(info) > 1: // 0 for a file that was replaced in the meantime
		return newHostError(scripting.Denied, q.given, "the file has a second hard link")
	}
	return nil
}

// open opens a path for reading. accept checks it before and after opening, and both must be
// the same file.
func (r *openedRoot) open(q *Operation, flags int, accept func(*Operation, fs.FileInfo) error) (file *os.File, info fs.FileInfo, err error) {
	before, err := r.lstat(q)
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
		err = newHostError(scripting.Unavailable, q.given, "another file now has its name; try again")
	}
	if err != nil {
		return nil, nil, errors.Join(err, file.Close())
	}
	return file, info, nil
}

func (r *openedRoot) remove(q *Operation) error {
	info, err := r.lstat(q)
	if err == nil {
		err = r.checkRegular(q, info)
	}
	if err == nil {
		err = r.Remove(q.Path)
	}
	return err
}

type statAnswer struct {
	Type     string `json:"type"`
	Size     int64  `json:"size"`
	Modified int64  `json:"modified"` // milliseconds since 1970
}

func (r *openedRoot) stat(q *Operation) (any, error) {
	info, err := r.lstat(q)
	if err != nil {
		return nil, err
	}
	d := statAnswer{Type: typeOf(info.Mode()), Modified: info.ModTime().UnixMilli()}
	switch d.Type {
	case typeFolder:
		return d, r.checkDir(q, info)
	case typeFile:
		d.Size = info.Size()
		return d, r.checkRegular(q, info)
	}
	return d, nil
}

// The types of directory entries.
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

// GrantedRoot is an fs grant with the usage of one run. It holds nothing open, and is safe for
// concurrent use.
type GrantedRoot struct {
	Grant grant.FS
	// maxFile and maxTotal are limits of the grant, in bytes.
	maxFile, maxTotal int64
	maxEntries        int // in a listed directory

	mu   sync.Mutex
	used int64 // of maxTotal
}

// Open returns the root of a grant, with no usage.
func Open(g grant.FS) *GrantedRoot {
	f := &GrantedRoot{Grant: g, maxEntries: 10_000}
	f.maxFile, f.maxTotal = g.Limits()
	return f
}

// charge counts bytes before they are read or written.
func (g *GrantedRoot) charge(given string, n int64) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if n > g.maxTotal-g.used {
		return newHostError(scripting.TooLarge, given, "one call reads and writes at most %d bytes (max_total)", g.maxTotal)
	}
	g.used += n
	return nil
}

// The limits of a path.
const (
	maxPath  = 4096
	maxName  = 255
	maxDepth = 64
)

// The names of temporary files. Scripts cannot access them.
const (
	tempPrefix = ".mcpd-"
	tempSuffix = ".tmp"
)

// parsePath returns the path below the root: canonical, with forward slashes, "." for the root
// itself. It does not access the disk.
func parsePath(given string, roots ...string) (string, error) {
	switch {
	case given == "":
		return "", newHostError(scripting.Invalid, "", "the path is empty")
	case len(given) > maxPath:
		return "", newHostError(scripting.Invalid, "", "the path has more than %d bytes", maxPath)
	case strings.ContainsFunc(given, isUnsafeRune) || !utf8.ValidString(given):
		return "", newHostError(scripting.Invalid, given, "a path must not contain control characters or invalid UTF-8")
	case strings.Contains(given, `\`) || hasDrive(given):
		return "", newHostError(scripting.Invalid, given, "a path needs forward slashes, without a drive")
	case slices.Contains(strings.Split(given, "/"), ".."):
		return "", newHostError(scripting.OutsideRoot, given, "a path must not contain ..")
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
			return "", newHostError(scripting.OutsideRoot, given, "the path is outside the root")
		}
	}
	return name, checkNames(given, name)
}

// checkNames rejects path elements that some systems interpret differently.
func checkNames(given, name string) error {
	if name == "." {
		return nil
	}
	names := strings.Split(name, "/")
	if len(names) > maxDepth {
		return newHostError(scripting.Invalid, given, "the path has more than %d elements", maxDepth)
	}
	for _, one := range names {
		if problem := checkName(one); problem != "" {
			return newHostError(scripting.Invalid, given, "%s", problem)
		}
	}
	if !filepath.IsLocal(filepath.FromSlash(name)) {
		return newHostError(scripting.Invalid, given, "this system has no such file names")
	}
	return nil
}

func checkName(name string) string {
	switch {
	case len(name) > maxName:
		return "a name in a path has at most 255 bytes"
	case strings.HasSuffix(name, ".") || strings.HasSuffix(name, " "):
		return "a name in a path must not end with a dot or a space"
	case strings.HasPrefix(name, tempPrefix) && strings.HasSuffix(name, tempSuffix):
		return "names like " + tempPrefix + "*" + tempSuffix + " are of files that are being written"
	case !utf8.ValidString(name) || strings.ContainsFunc(name, isUnsafeRune) || strings.ContainsAny(name, `/\`) || hasDrive(name):
		return "the name cannot be used in a path"
	}
	return ""
}

// isUnsafeRune reports invisible characters and invalid ones.
func isUnsafeRune(r rune) bool {
	return r == utf8.RuneError || unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp)
}

// hasDrive reports whether a path starts with a Windows drive.
func hasDrive(p string) bool {
	return len(p) > 1 && p[1] == ':' && (p[0]|0x20 >= 'a' && p[0]|0x20 <= 'z')
}

// cutRoot returns the path below a root, by whole elements.
func cutRoot(name, root string) (rest string, ok bool) {
	if root == "" || !path.IsAbs(root) {
		return "", false
	}
	if name == root {
		return ".", true
	}
	return strings.CutPrefix(name, strings.TrimSuffix(root, "/")+"/")
}
