package main

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/mcpd/mcpd/internal/base/atomicfile"
	"github.com/mcpd/mcpd/internal/language/loader"
	"github.com/mcpd/mcpd/internal/ops/history"
)

// projectDirs are where the files of a project are: the tools directory, and the directory of mcpd.hcl.
// No path leaves these directories, not even through a link.
type projectDirs struct {
	// export means that no server reads the files: tools.d is a directory beside mcpd.hcl, any name of a
	// file is allowed, and new files belong to the user who runs the command.
	export bool
	name   string      // of the config file; unused for an export
	mode   fs.FileMode // of new files, before the umask

	tools, config *os.Root
}

func (p *projectDirs) open(tools, config string) (err error) {
	if p.config, err = os.OpenRoot(config); err != nil {
		return err
	}
	if p.tools, err = os.OpenRoot(tools); err != nil {
		return errors.Join(err, p.config.Close())
	}
	if !p.export {
		err = cmp.Or(checkOwners(tools, p.tools), checkOwners(config, p.config))
	}
	if err != nil {
		p.close()
	}
	return err
}

// checkOwners returns an error if another user than root and the owner of the opened directory could
// have chosen which directory was opened. It matters only to root, which could write any directory: a
// user must not lead it to one by a link.
func checkOwners(path string, opened *os.Root) error {
	info, err := opened.Stat(".")
	if err != nil {
		return err
	}
	owner, known := atomicfile.Owner(info)
	if !known || os.Geteuid() != 0 {
		return nil
	}
	for dir := path; ; dir = filepath.Dir(dir) {
		info, err := os.Lstat(dir)
		if err != nil {
			return err
		}
		by, _ := atomicfile.Owner(info)
		writable := info.Mode()&fs.ModeSymlink == 0 && info.Mode().Perm()&0o002 != 0 && info.Mode()&fs.ModeSticky == 0
		if by != 0 && by != owner || writable {
			return fmt.Errorf("%s belongs to another user than %s, or every user may write it, so root does not write there; run mcpd rollback as the owner of the files", sanitize(dir), sanitize(path))
		}
		if dir == filepath.Dir(dir) {
			return nil
		}
	}
}

func (p *projectDirs) close() { _ = errors.Join(p.tools.Close(), p.config.Close()) }

// at returns the directory and the path of a file of a project.
func (p *projectDirs) at(name string) (*os.Root, string) {
	if below, ok := strings.CutPrefix(name, "tools.d/"); ok && !p.export {
		return p.tools, below
	}
	return p.config, name
}

// owns reports whether a server reads files with this name. The list of files comes from the server,
// and root may roll back a server of another user: it must not write other files beside mcpd.hcl.
func (p *projectDirs) owns(name string) bool {
	switch {
	case p.export:
		return true
	case strings.HasPrefix(name, "tools.d/"):
		return !slices.ContainsFunc(strings.Split(name, "/"), loader.IsHidden)
	}
	return name == p.name || name == "mcpd.lock" || path.Ext(name) == ".mcpdvars" && !strings.Contains(name, "/")
}

// change replaces the files before by the files after. An error of the disk changes nothing: all new
// files are written beside the old ones and renamed at the end, so that a server that watches the
// directories sees one change.
func (p *projectDirs) change(before history.Sums, after map[string][]byte) error {
	old, err := p.read(before, after)
	if err != nil {
		return err
	}
	r, err := p.prepare(old, after)
	if err != nil {
		return fmt.Errorf("%w; nothing was changed", err)
	}
	return r.commit()
}

// maxProjectFile bounds what is read of a file. The server reads no larger one.
const maxProjectFile = 64 << 20

// read returns the files on disk with the names in before and after. It returns an error if one has
// neither the content before nor, as after an interrupted change, the content after.
func (p *projectDirs) read(before history.Sums, after map[string][]byte) (map[string][]byte, error) {
	found, sums := map[string][]byte{}, history.SumsOf(after)
	all := maps.Clone(sums)
	maps.Copy(all, before)
	for _, full := range slices.Sorted(maps.Keys(all)) {
		if !p.owns(full) {
			return nil, fmt.Errorf("%s is no file that a server reads", sanitize(full))
		}
		root, name := p.at(full)
		info, err := root.Lstat(name)
		_, serves := before[full]
		_, stays := after[full]
		switch {
		case errors.Is(err, fs.ErrNotExist) && (!serves || !stays):
			continue
		case errors.Is(err, fs.ErrNotExist):
			return nil, fmt.Errorf("%s is missing; if it was removed, run mcpd reload, and see mcpd history; otherwise %s", sanitize(full), whereFilesAre)
		case err != nil:
			return nil, err
		case !info.Mode().IsRegular():
			return nil, fmt.Errorf("%s is not a regular file; change it by hand", sanitize(full))
		}
		content, err := readFileIn(root, name)
		if err != nil {
			return nil, err
		}
		if sum := history.Sum(content); sum != before[full] && sum != sums[full] {
			return nil, fmt.Errorf("%s on disk is not what the server serves; save it elsewhere, and run mcpd reload", sanitize(full))
		}
		found[full] = content
	}
	return found, nil
}

func readFileIn(root *os.Root, name string) ([]byte, error) {
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe must not block
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(err, fmt.Errorf("%s is not a regular file", sanitize(name)))
	}
	return io.ReadAll(io.LimitReader(f, maxProjectFile+1))
}

// rewrite is a prepared change of files.
type rewrite struct {
	dirs  *projectDirs
	steps []step
	old   map[string][]byte
}

// step is the change of one file.
type step struct {
	full      string // in the project
	temporary string // has the new content; "" if the file is to be removed
}

// prepare writes the new files beside the old ones. Files are removed in the last steps.
func (p *projectDirs) prepare(old, after map[string][]byte) (*rewrite, error) {
	r := &rewrite{dirs: p, old: old}
	var removals []step
	for _, change := range history.Changes(history.SumsOf(old), history.SumsOf(after)) {
		full := change[1:]
		if change[0] == '-' {
			removals = append(removals, step{full: full})
			continue
		}
		temporary, err := p.stage(full, after[full])
		if err != nil {
			r.discard()
			if path := (*fs.PathError)(nil); errors.As(err, &path) {
				err = path.Err // it names a temporary file
			}
			return nil, fmt.Errorf("write %s: %w", sanitize(full), err)
		}
		r.steps = append(r.steps, step{full, temporary})
	}
	r.steps = append(r.steps, removals...)
	return r, nil
}

// discard removes the new files.
func (r *rewrite) discard() {
	for _, s := range r.steps {
		if s.temporary != "" {
			root, _ := r.dirs.at(s.full)
			_ = root.Remove(s.temporary)
		}
	}
}

// commit renames the new files, and removes files. After an error it restores the old files. The
// renames are not synced: after a power cut, a file is the old or the new one.
func (r *rewrite) commit() error {
	for i, s := range r.steps {
		var err error
		if root, name := r.dirs.at(s.full); s.temporary != "" {
			err = root.Rename(s.temporary, name)
		} else {
			err = root.Remove(name)
		}
		if err != nil {
			return r.undo(i, err)
		}
	}
	return nil
}

// undo restores the first n files after a failure.
func (r *rewrite) undo(n int, failure error) error {
	defer r.discard()
	var changed []string
	for _, s := range r.steps[:n] {
		root, name := r.dirs.at(s.full)
		content, existed := r.old[s.full]
		var err error
		if !existed {
			err = root.Remove(name)
		} else {
			var temporary string
			if temporary, err = r.dirs.stage(s.full, content); err == nil {
				err = root.Rename(temporary, name)
			}
		}
		if err != nil {
			changed = append(changed, sanitize(s.full))
		}
	}
	if len(changed) > 0 {
		return fmt.Errorf("%w; these files are changed already, so run mcpd rollback with this revision again: %s", failure, strings.Join(changed, " "))
	}
	return fmt.Errorf("%w; nothing was changed", failure)
}

// stage writes a hidden file beside a file of a project, with its mode and owner.
func (p *projectDirs) stage(full string, content []byte) (temporary string, err error) {
	root, name := p.at(full)
	folder := path.Dir(name)
	if err := root.MkdirAll(folder, 0o755); err != nil {
		return "", err
	}
	like, err := root.Lstat(name)
	exists := err == nil
	if !exists {
		like, err = root.Stat(folder)
	}
	if err != nil {
		return "", err
	}
	temporary = path.Join(folder, ".rollback-"+rand.Text())
	mode := p.mode
	if exists || path.Ext(name) == ".mcpdvars" { // others may read it only once it has the old mode
		mode = 0o600
	}
	f, err := root.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return "", err
	}
	_, err = f.Write(content)
	if err == nil && !p.export {
		err = atomicfile.ChownLike(f, like)
	}
	if exists {
		err = errors.Join(err, f.Chmod(like.Mode().Perm()))
	}
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return "", errors.Join(err, root.Remove(temporary))
	}
	return temporary, nil
}
