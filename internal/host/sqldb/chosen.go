package sqldb

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"strconv"
	"sync"

	"modernc.org/sqlite/vfs"

	"github.com/mcpd/mcpd/internal/host/files"
	"github.com/mcpd/mcpd/internal/host/sqldb/sqlite"
	"github.com/mcpd/mcpd/internal/language/grant"
	"github.com/mcpd/mcpd/internal/language/sqltext"
	"github.com/mcpd/mcpd/scripting"
)

// readChosen runs a statement on a file that the call chooses. SQLite reads the
// very file that was checked, through a file system in which there is nothing
// else. It takes no lock, so what is written meanwhile is noticed afterwards.
func (b *Broker) readChosen(ctx context.Context, g grant.SQL, r *Request, a *answer) error {
	const busy = "another program is at work on the database (a -wal or -journal file holds changes); try again when it is done"
	opened, _, err := files.OpenFile(grant.FS{Root: g.Path, Real: g.Real}, r.given, busy, "-wal", "-journal")
	if err != nil {
		return err
	}
	defer opened.Close()
	before, err := opened.Stat()
	if err != nil {
		return err
	}
	system, ticket, err := b.vault.put(opened)
	if err != nil {
		return err
	}
	defer b.vault.remove(ticket)
	c, err := sqlite.Open(sqlite.Options{Path: ticket, VFS: system, Immutable: true, MaxValue: maxText})
	if err != nil {
		return err
	}
	defer c.Close()
	if r.Method == "open" {
		// Whether it is a database shows when its tables are looked for.
		r.statement = &sqltext.Statement{Text: "SELECT count(*) FROM sqlite_schema"}
	}
	if err := (file{c}).run(ctx, r, a, b.options.Redact); err != nil {
		return err
	}
	after, err := opened.Stat()
	if err == nil && (after.Size() != before.Size() || !after.ModTime().Equal(before.ModTime())) {
		return fault(scripting.Unavailable, r.given, "the database was written while it was read; try again")
	}
	return err
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
