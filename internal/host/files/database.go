package files

import (
	"context"
	"os"

	"github.com/mcpd/mcpd/internal/language/grant"
	"github.com/mcpd/mcpd/scripting"
)

// OpenFile opens a file below the folder of a grant for reading, under the rules
// of all files, and returns its path below the folder as well, in canonical form.
// What stands beside it under the same name with one of the suffixes, and is not
// empty, keeps it from being opened: busy tells of it. The error is a
// [*scripting.HostError].
func OpenFile(g grant.FS, given, busy string, suffixes ...string) (file *os.File, name string, err error) {
	q := &Request{Method: "open", given: given}
	if q.Path, err = parsePath(given, g.Root, g.Real); err != nil {
		return nil, "", err
	}
	root, err := openRoot(g)
	if err != nil {
		return nil, "", explain(context.Background(), given, err)
	}
	defer root.Close()
	file, _, err = root.open(q, noWait, root.plain)
	if err != nil {
		return nil, "", explain(context.Background(), given, err)
	}
	for _, suffix := range suffixes {
		if info, err := root.Lstat(q.Path + suffix); err == nil && info.Size() > 0 {
			file.Close()
			return nil, "", fault(scripting.Unavailable, given, "%s", busy)
		}
	}
	return file, q.Path, nil
}

// CheckPath returns the path below the folder of a grant that is meant, and
// refuses what [OpenFile] would refuse without a look at the disk.
func CheckPath(g grant.FS, given string) (string, error) { return parsePath(given, g.Root, g.Real) }
