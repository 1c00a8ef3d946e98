package overlay

import (
	"errors"
	"io/fs"
	"log/slog"

	"github.com/mcpd/mcpd/internal/federation/lockfile"
)

// errRoom is why what an upstream lists is not in a file that has no room for it.
var errRoom = errors.New("the lock file would be too long with it")

// keep writes what the file does not have to it, or keeps it in memory where that cannot
// be. Somebody who has changed the file meanwhile is not overwritten: the file is read
// again then, and this is tried again.
func (p *pins) keep(kept *lockfile.Lock, fresh bool) {
	before := p.unkept
	if fresh {
		p.set(p.read, kept)
	}
	p.unkept = errFixed
	if p.Fixed {
		return
	}
	if p.unkept = p.write(); p.unkept != nil && (fresh || before == nil || before.Error() != p.unkept.Error()) {
		p.Logger.Warn("what upstreams offer is pinned in memory only, and anew at the next start",
			slog.Any("upstreams", p.kept.Upstreams()), slog.String("error", p.unkept.Error()))
	}
}

// write writes what is kept to the file, and returns why something of it still is: for want
// of room that is what would make the file too long, and the rest is written.
func (p *pins) write() error {
	full := p.read.Fill(p.kept)
	if full == p.read {
		return errRoom
	}
	switch now, err := lockfile.Read(p.Path); {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	case err == nil && now.Sum() != p.read.Sum() || err != nil && p.file != nil:
		return errors.New("the file has changed meanwhile")
	}
	if err := lockfile.Write(p.Path, full); err != nil {
		return err
	}
	p.file = full.Encode()
	if p.set(full, p.kept); len(p.kept.Upstreams()) > 0 {
		return errRoom
	}
	return nil
}
