package audit

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// aside is a file that was put aside, or the one that is being written.
type aside struct {
	path string
	// first is the number of its first line.
	first uint64
}

// seqDigits is how many digits the number in a name has: as many as a uint64.
const seqDigits = 20

// asidePath returns what the file of a log is called once it is put aside:
// audit.jsonl becomes audit-00000000000000000001.jsonl.
func asidePath(path string, first uint64) string {
	extension := filepath.Ext(path)
	return fmt.Sprintf("%s-%0*d%s", strings.TrimSuffix(path, extension), seqDigits, first, extension)
}

// asides returns the files of a log that were put aside, the oldest first.
func asides(path string) ([]aside, error) {
	entries, err := os.ReadDir(folderOf(path))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	extension := filepath.Ext(path)
	prefix := strings.TrimSuffix(filepath.Base(path), extension) + "-"
	var found []aside
	for _, entry := range entries {
		number, ok := strings.CutPrefix(entry.Name(), prefix)
		number, isLog := strings.CutSuffix(number, extension)
		first, err := strconv.ParseUint(number, 10, 64)
		if !ok || !isLog || err != nil || len(number) != seqDigits {
			continue
		}
		found = append(found, aside{filepath.Join(folderOf(path), entry.Name()), first})
	}
	slices.SortFunc(found, func(a, b aside) int { return strings.Compare(a.path, b.path) })
	return found, nil
}

// In returns the logs of a folder: what has a head there, in the order of their names.
func In(folder string) (logs []string, err error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, fmt.Errorf("look for audit logs: %w", err)
	}
	for _, entry := range entries {
		path := filepath.Join(folder, entry.Name())
		if log := strings.TrimSuffix(path, headPath("")); log != path {
			logs = append(logs, log)
		}
	}
	return logs, nil
}
