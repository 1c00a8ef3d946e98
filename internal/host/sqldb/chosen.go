package sqldb

import (
	"context"

	"github.com/mcpd/mcpd/internal/host/files"
	"github.com/mcpd/mcpd/internal/language/grant"
	"github.com/mcpd/mcpd/internal/language/sqltext"
	"github.com/mcpd/mcpd/scripting"
)

// readChosen runs a statement on a file that the call chooses. The driver reads the
// very file that was checked. It takes no lock, so what is written meanwhile is noticed
// afterwards.
func readChosen(ctx context.Context, driver FileDriver, g grant.SQL, r *Request, a *Answer) error {
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
	c, err := driver.ConnectFile(opened)
	if err != nil {
		return err
	}
	defer c.Close()
	if r.Method == "open" {
		// Whether it is a database shows when its tables are looked for.
		r.Statement = &sqltext.Statement{Text: "SELECT count(*) FROM sqlite_schema"}
	}
	if err := c.Run(ctx, r, a); err != nil {
		return err
	}
	after, err := opened.Stat()
	if err == nil && (after.Size() != before.Size() || !after.ModTime().Equal(before.ModTime())) {
		return Fault(scripting.Unavailable, r.given, "the database was written while it was read; try again")
	}
	return err
}
