package loader

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"path"
	"path/filepath"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/language/definition"
	"github.com/mcpd/mcpd/internal/language/hclfile"
)

// Config is the operator's file as it was last read.
type Config struct {
	Hash  Hash
	Bytes []byte
	name  string
	// folder is where the file is on the disk, and values are those that were given from
	// outside and from the *.mcpdvars files.
	folder string
	values definition.VarValues
	// Sources are the file and the *.mcpdvars files, by the names that
	// Problems use.
	Sources map[string][]byte
	// Config is never nil: without a file, or with one that cannot be parsed, it
	// is the defaults, and Problems tell.
	Config   *definition.Config
	Problems diag.List
	// foreign are the files that are another user's, and the folder that they are in.
	ownedByOthers []string
	// open says that every user may replace what is in the folder.
	replaceable bool
}

// ReadConfig reads the operator's file, which fsys holds under the last element
// of name, and the *.mcpdvars files beside it, in bytewise order of their
// names; values win over those. A nil fsys and a missing file mean an empty one.
func ReadConfig(fsys fs.FS, name string, values definition.VarValues) *Config {
	c := &Config{Sources: map[string][]byte{}, name: name}
	all := definition.VarValues{}
	if fsys != nil {
		c.checkDirectory(fsys)
		c.readVars(fsys, path.Dir(name), all)
		text, info, err := content(fsys, path.Base(name), maxToolFile)
		c.noteOwner(name, info)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			c.Problems = append(c.Problems, unreadable(name, "the operator's file cannot be read", "", err))
		}
		c.Bytes = text
	}
	maps.Copy(all, values)
	c.Sources[name] = c.Bytes
	c.Hash = sha256.Sum256(c.Bytes)
	c.folder, c.values = Path(fsys), all
	c.decode()
	return c
}

// decode evaluates the text with the values.
func (c *Config) decode() {
	file, problems := hclfile.Parse(hclfile.Source{Path: c.name, AbsDir: c.folder, Bytes: c.Bytes}, hclfile.ConfigKind)
	c.Problems = append(c.Problems, problems...)
	if file != nil {
		c.Config, problems = file.DecodeConfig(c.values)
		c.Problems = append(c.Problems, problems...)
	}
	if c.Config == nil {
		c.Config = &definition.Config{Incomplete: true}
	}
}

// With returns the same file with other values for some variables, by their names. It
// reads nothing from the disk.
func (c *Config) With(vars map[string]json.RawMessage, origin string) *Config {
	with := &Config{Hash: c.Hash, Bytes: c.Bytes, name: c.name, folder: c.folder, Sources: c.Sources, values: maps.Clone(c.values)}
	for name, value := range vars {
		with.values[name] = definition.VarValue{JSON: value, Origin: origin}
	}
	with.decode()
	return with
}

// look takes down who may replace what is in the folder. A volume that is mounted for
// mcpd alone is open as the files in it are, and in a sticky folder nobody replaces the
// files of others.
func (c *Config) checkDirectory(fsys fs.FS) {
	info, err := fs.Stat(fsys, ".")
	if err != nil {
		return // what it holds is missing, too
	}
	c.noteOwner(path.Dir(c.name), info)
	c.replaceable = writableByOthers(info) && info.Mode()&fs.ModeSticky == 0 && !isVolume(fsys, path.Base(c.name))
}

// mounted reports whether a file stands in a volume as Kubernetes mounts one, which it
// writes itself: a link through ..data, of no other user, as that is. Whoever may write in
// a folder can give what is there another name, and make links, but none that are ours.
func isVolume(fsys fs.FS, name string) bool {
	const data = "..data"
	for _, link := range []string{data, name} {
		info, err := fs.Lstat(fsys, link)
		if err != nil || info.Mode()&fs.ModeSymlink == 0 || isOwnedByOther(info) {
			return false
		}
	}
	target, err := fs.ReadLink(fsys, name)
	return err == nil && target == data+"/"+name
}

// note takes down a file, or a folder, that is another user's.
func (c *Config) noteOwner(name string, info fs.FileInfo) {
	if isOwnedByOther(info) {
		c.ownedByOthers = append(c.ownedByOthers, name)
	}
}

// varsSuffix is how files that hold values of variables end.
const varsSuffix = ".mcpdvars"

// readVars adds the values of all *.mcpdvars files.
func (c *Config) readVars(fsys fs.FS, folder string, values definition.VarValues) {
	names, err := fs.Glob(fsys, "*"+varsSuffix)
	if err != nil {
		return // the pattern is well formed
	}
	for _, base := range names {
		name := path.Join(folder, base)
		text, info, err := content(fsys, base, maxToolFile)
		c.noteOwner(name, info)
		if err != nil {
			c.Problems = append(c.Problems, unreadable(name, "these values of variables cannot be read", "", err))
			continue
		}
		c.Sources[name] = text
		read, problems := hclfile.ParseVars(hclfile.Source{Path: name, Bytes: text})
		c.Problems = append(c.Problems, problems...)
		maps.Copy(values, read)
	}
}

// Guard reports the operator's file as missing when an earlier read found one:
// a file that is gone, or empty, for the moment in which somebody replaces it
// must not take its policies with it.
func (c *Config) CheckMissing(before *Config) {
	if before == nil || len(bytes.TrimSpace(before.Bytes)) == 0 || len(bytes.TrimSpace(c.Bytes)) > 0 || c.Problems.HasErrors() {
		return
	}
	c.Problems = append(c.Problems, diag.Diagnostic{
		Code: "config-gone", Summary: "the operator's file is gone or empty, and what it said still holds",
		Detail: "put it back, or restart mcpd to run without it", Range: diag.Range{File: c.name},
	})
}

// Lock is the file of the accepted tools of upstream servers as it was last read.
type Lock struct {
	// Name is how diagnostics call the file.
	Name string
	// Bytes are nil where there is no file, or where Problems tell why it cannot be read.
	Bytes        []byte
	Problems     diag.List
	ownedByOther bool
}

// maxLock bounds the file, in bytes: what reads it refuses as much.
const maxLock = 64 << 20

// ReadLock reads a lock file of the disk. A path of "" is that of none.
func ReadLock(path string) *Lock {
	if path == "" {
		return &Lock{}
	}
	l := &Lock{Name: filepath.ToSlash(filepath.Clean(path))}
	text, info, err := content(Dir(filepath.Dir(path)), filepath.Base(path), maxLock)
	l.ownedByOther = isOwnedByOther(info)
	switch {
	case err == nil:
		l.Bytes = append([]byte{}, text...)
	case !errors.Is(err, fs.ErrNotExist):
		l.Problems = diag.List{unreadable(l.Name, "what was accepted of upstream servers cannot be read", "", err)}
	}
	return l
}

// Foreign is [Tree.Foreign] for the file.
func (l *Lock) CheckOwner() diag.List {
	if !l.ownedByOther {
		return nil
	}
	return ownerProblems([]string{l.Name})
}
