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

// Config is the config file as last read.
type Config struct {
	Hash  Hash
	Bytes []byte
	name  string
	// folder is the directory of the file on disk. values are the supplied values and the
	// values of the *.mcpdvars files.
	folder string
	values definition.VarValues
	// Sources are the contents of the config file and the *.mcpdvars files, by the names in
	// Problems.
	Sources map[string][]byte
	// Config is never nil. If the file is missing or cannot be parsed, it holds the defaults;
	// Problems has the errors.
	Config   *definition.Config
	Problems diag.List
	// ownedByOthers are the files owned by another user, and their directory if it is.
	ownedByOthers []string
	// replaceable means that every user may replace the files of the directory.
	replaceable bool
	swaps       swaps
}

// ReadConfig reads the config file and the *.mcpdvars files next to it, in bytewise order of
// their names. fsys holds the config file under the last element of name. values override the
// *.mcpdvars files. A nil fsys or a missing file is an empty config.
func ReadConfig(fsys fs.FS, name string, values definition.VarValues) *Config {
	c := &Config{Sources: map[string][]byte{}, name: name}
	all := definition.VarValues{}
	if fsys != nil {
		c.swaps = noteSwaps(fsys)
		c.swaps.note(volumeLink)
		c.checkDirectory(fsys)
		c.readVars(fsys, path.Dir(name), all)
		text, info, err := content(fsys, path.Base(name), maxToolFile)
		c.noteOwner(name, info)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			c.Problems = append(c.Problems, unreadable(name, "the config file cannot be read", "", err))
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

// Swapped reports whether the mounted volume or the directory of the file was replaced since the
// file was read.
func (c *Config) Swapped() bool { return c.swaps.swapped() }

// decode evaluates the file with the values.
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

// With returns the same file with other values for some variables. It does not read from disk.
func (c *Config) With(vars map[string]json.RawMessage, origin string) *Config {
	with := &Config{Hash: c.Hash, Bytes: c.Bytes, name: c.name, folder: c.folder, Sources: c.Sources, values: maps.Clone(c.values)}
	for name, value := range vars {
		with.values[name] = definition.VarValue{JSON: value, Origin: origin}
	}
	with.decode()
	return with
}

// checkDirectory records whether others may replace the files of the directory. A volume
// mounted for mcpd has open permissions like its files, so it does not count. In a sticky
// directory, users cannot replace files of others.
func (c *Config) checkDirectory(fsys fs.FS) {
	info, err := fs.Stat(fsys, ".")
	if err != nil {
		return // its files are missing, too
	}
	c.noteOwner(path.Dir(c.name), info)
	c.replaceable = writableByOthers(info) && info.Mode()&fs.ModeSticky == 0 && !isVolume(fsys, path.Base(c.name))
}

// isVolume reports whether a file is in a volume mounted by Kubernetes: it is a link through
// ..data, and both links belong to this user or root. Users who may write the directory can
// rename entries and create links, but not links owned by this user.
func isVolume(fsys fs.FS, name string) bool {
	for _, link := range []string{volumeLink, name} {
		info, err := fs.Lstat(fsys, link)
		if err != nil || info.Mode()&fs.ModeSymlink == 0 || isOwnedByOther(info) {
			return false
		}
	}
	target, err := fs.ReadLink(fsys, name)
	return err == nil && target == volumeLink+"/"+name
}

// volumeLink is the link in a volume mounted by Kubernetes that leads to its current files.
const volumeLink = "..data"

// noteOwner records a file or directory owned by another user.
func (c *Config) noteOwner(name string, info fs.FileInfo) {
	if isOwnedByOther(info) {
		c.ownedByOthers = append(c.ownedByOthers, name)
	}
}

// varsSuffix is the suffix of files with values of variables.
const varsSuffix = ".mcpdvars"

// readVars adds the values of all *.mcpdvars files.
func (c *Config) readVars(fsys fs.FS, folder string, values definition.VarValues) {
	names, err := fs.Glob(fsys, "*"+varsSuffix)
	if err != nil {
		return // the pattern is valid
	}
	for _, base := range names {
		name := path.Join(folder, base)
		text, info, err := content(fsys, base, maxToolFile)
		c.noteOwner(name, info)
		if err != nil {
			c.Problems = append(c.Problems, unreadable(name, "this file of variable values cannot be read", "", err))
			continue
		}
		c.Sources[name] = text
		read, problems := hclfile.ParseVars(hclfile.Source{Path: name, Bytes: text})
		c.Problems = append(c.Problems, problems...)
		maps.Copy(values, read)
	}
}

// CheckMissing reports an error if an earlier read found the config file and this one did not.
// Otherwise, a file that is missing or empty while it is replaced would remove its policies.
func (c *Config) CheckMissing(before *Config) {
	if before == nil || len(bytes.TrimSpace(before.Bytes)) == 0 || len(bytes.TrimSpace(c.Bytes)) > 0 || c.Problems.HasErrors() {
		return
	}
	c.Problems = append(c.Problems, diag.Diagnostic{
		Code: "config-gone", Summary: "the config file is missing or empty; its last version stays in use",
		Detail: "restore it, or restart mcpd to run without it", Range: diag.Range{File: c.name},
	})
}

// Lock is the lock file, with the accepted tools of upstreams, as last read.
type Lock struct {
	// Name is the name in diagnostics.
	Name string
	// Bytes is nil if the file does not exist or cannot be read; in the latter case, Problems
	// has the reason.
	Bytes        []byte
	Problems     diag.List
	ownedByOther bool
}

// maxLock bounds the file, in bytes. Its parser has the same limit.
const maxLock = 64 << 20

// ReadLock reads a lock file from fsys, which holds it by the base name of path. A nil fsys is the
// directory of path on disk. An empty path is an empty lock.
func ReadLock(fsys fs.FS, path string) *Lock {
	if path == "" {
		return &Lock{}
	}
	if fsys == nil {
		fsys = Dir(filepath.Dir(path))
	}
	l := &Lock{Name: filepath.ToSlash(filepath.Clean(path))}
	text, info, err := content(fsys, filepath.Base(path), maxLock)
	l.ownedByOther = isOwnedByOther(info)
	switch {
	case err == nil:
		l.Bytes = append([]byte{}, text...)
	case !errors.Is(err, fs.ErrNotExist):
		l.Problems = diag.List{unreadable(l.Name, "the lock file cannot be read", "", err)}
	}
	return l
}

// CheckOwner is [Tree.CheckOwner] for the lock file.
func (l *Lock) CheckOwner() diag.List {
	if !l.ownedByOther {
		return nil
	}
	return ownerProblems([]string{l.Name})
}
