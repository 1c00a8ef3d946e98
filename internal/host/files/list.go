package files

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/mcpd/mcpd/scripting"
)

// entry is one entry of a folder.
type entry struct {
	Name string `json:"name"`
	Type string `json:"type"`
}

type listed struct {
	Entries []entry `json:"entries"`
}

// list answers with what a folder holds, in bytewise order of the names. Names
// that no path can have are left out, and those that no script may see redacted.
func (f *Folder) list(ctx context.Context, root *root, q *Request, redact func([]byte) []byte) (any, error) {
	folder, _, err := root.open(q, noWait|onlyFolder, root.folder)
	if err != nil {
		return nil, err
	}
	defer folder.Close()
	entries, seen := []entry{}, 0
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		found, err := folder.ReadDir(1000)
		for _, e := range found {
			if checkName(e.Name()) == "" {
				entries = append(entries, entry{e.Name(), typeOf(e.Type())})
			}
		}
		if seen += len(found); seen > f.maxEntries {
			return nil, fault(scripting.TooLarge, q.given, "the folder holds more than %d entries", f.maxEntries)
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
	}
	slices.SortFunc(entries, func(a, b entry) int { return strings.Compare(a.Name, b.Name) })
	for i := range entries {
		entries[i].Name = string(redact([]byte(entries[i].Name)))
	}
	return listed{entries}, nil
}
