package sqlite

import (
	"errors"
	"io/fs"
	"os"
	"strconv"
	"sync"

	"modernc.org/sqlite/vfs"

	"github.com/mcpd/mcpd/internal/host/sqldb"
)

// ConnectFile opens a file through a file system in which there is nothing else, and only
// to read it.
func (d *Driver) ConnectFile(f *os.File) (sqldb.Conn, error) {
	system, ticket, err := d.vault.put(f)
	if err != nil {
		return nil, err
	}
	c, err := Open(Options{Path: ticket, VFS: system, Immutable: true, MaxValue: sqldb.MaxText})
	if err != nil {
		d.vault.remove(ticket)
		return nil, err
	}
	return &vaulted{file{c}, func() { d.vault.remove(ticket) }}, nil
}

// vaulted is a connection to a file in a vault.
type vaulted struct {
	file
	remove func()
}

// Close closes the connection, and takes the file out of the vault.
func (v *vaulted) Close() {
	v.file.Close()
	v.remove()
}

// vault is a file system that holds the files which are read now, by tickets.
type vault struct {
	mu     sync.Mutex
	name   string // that SQLite knows it by, "" until a file is read
	system *vfs.FS
	last   int
	held   map[string]*os.File
}

// put returns the name of the file system and that of the file in it.
func (v *vault) put(f *os.File) (system, ticket string, err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.system == nil {
		if v.name, v.system, err = vfs.New(v); err != nil {
			return "", "", err
		}
		v.held = map[string]*os.File{}
	}
	v.last++
	ticket = "ticket" + strconv.Itoa(v.last)
	v.held[ticket] = f
	return v.name, ticket, nil
}

func (v *vault) remove(ticket string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.held, ticket)
}

// Open returns a file by its ticket, with an offset of its own to the caller.
func (v *vault) Open(ticket string) (fs.File, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	f, ok := v.held[ticket]
	if !ok {
		return nil, &fs.PathError{Op: "open", Path: ticket, Err: fs.ErrNotExist}
	}
	return lent{f}, nil
}

// lent is a file that its owner closes.
type lent struct{ *os.File }

// Close leaves the file open.
func (lent) Close() error { return nil }

// close takes the file system from SQLite.
func (v *vault) close() error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.system == nil {
		return nil
	}
	if err := v.system.Close(); err != nil && !errors.Is(err, vfs.ErrInUse) {
		return err
	}
	v.system = nil
	return nil
}
