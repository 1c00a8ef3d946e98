package compose

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"slices"
)

// Kind says how a file on the disk differs from the one that would be written.
type Kind string

// The kinds of differences.
const (
	Missing Kind = "missing" // it is not there
	Changed Kind = "changed" // it holds something else
	Stale   Kind = "stale"   // it is there, and would not be written any more
)

// Difference is a file that is not on the disk as it would be written.
type Difference struct {
	Name string
	Kind Kind
	// Line is the first one, from 1 on, that is another or missing in one of the two,
	// where the file has Changed. What stands there is not told: people paste secrets
	// into such files.
	Line int
}

// String returns the name, the line of what has changed, and the kind.
func (d Difference) String() string {
	if d.Kind == Changed {
		return fmt.Sprintf("%s:%d: %s", d.Name, d.Line, d.Kind)
	}
	return fmt.Sprintf("%s: %s", d.Name, d.Kind)
}

// Drift returns how the files that read finds differ from those that [Files]
// returned, in the order of those. read returns an error that is [fs.ErrNotExist]
// where there is no file; with every other one Drift fails.
func Drift(files []File, read func(name string) ([]byte, error)) ([]Difference, error) {
	var differences []Difference
	for _, name := range names {
		i := slices.IndexFunc(files, func(f File) bool { return f.Name == name })
		have, err := read(name)
		switch gone := errors.Is(err, fs.ErrNotExist); {
		case err != nil && !gone:
			return nil, fmt.Errorf("read %s: %w", name, err)
		case gone && i >= 0:
			differences = append(differences, Difference{Name: name, Kind: Missing})
		case !gone && i < 0:
			differences = append(differences, Difference{Name: name, Kind: Stale})
		case !gone && !bytes.Equal(have, files[i].Content):
			differences = append(differences, Difference{name, Changed, differing(have, files[i].Content)})
		}
	}
	return differences, nil
}

// differing returns the first line in which two texts differ, which they do.
func differing(a, b []byte) int {
	same := 0
	for same < min(len(a), len(b)) && a[same] == b[same] {
		same++
	}
	return 1 + bytes.Count(a[:same], []byte("\n"))
}
