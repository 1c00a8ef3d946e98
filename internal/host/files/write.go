package files

import (
	"context"
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
)

// write writes a file: beside its place first, and there when it is whole and on
// the disk.
func (f *Folder) write(ctx context.Context, root *root, q *Request) error {
	mode := fs.FileMode(0o644)
	info, err := root.look(q)
	switch {
	case err == nil:
		if err := root.plain(q, info); err != nil {
			return err
		}
		mode = info.Mode().Perm()
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	if err := f.take(q.given, int64(len(q.content))); err != nil {
		return err
	}
	temp := beside(q.Path, tempPrefix+rand.Text()+tempSuffix)
	file, err := root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL|noWait, mode)
	if err != nil {
		return err
	}
	err = errors.Join(fill(ctx, file, q.content), file.Close())
	if err == nil {
		err = root.Rename(temp, q.Path)
	}
	if err != nil {
		// What cannot be removed is told of by no list, and is in nobody's way.
		_ = root.Remove(temp)
	}
	return err
}

// fill writes a file to the disk.
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
