// Package history keeps the files of the last revisions that a server has served, so that an
// operator can see what changed and get an earlier state back.
//
// A [Revision] is a set of files. [Add] stores it in the state store of the server, unless it is
// the newest one already, so that replicas with one database store the same files once. [List]
// returns the stored revisions, and [Read] the files of one. What is stored is checked when it is
// read: the name of a revision is the digest of its files.
package history

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/mcpd/mcpd/internal/base/jsonguard"
	"github.com/mcpd/mcpd/internal/base/state"
)

// Limits of a history.
const (
	// Revisions is the number of revisions that are stored.
	Revisions = 10
	// maxStored bounds the compressed files of all revisions, in bytes. The oldest are dropped
	// first. A revision with more than maxSize bytes or maxFiles files is listed without them.
	maxStored = 16 << 20
	maxSize   = 16 << 20
	maxFiles  = 10_000
	maxText   = 32 << 20 // of the files as JSON
	maxIndex  = 1 << 20
	maxNames  = 20  // of an entry
	maxName   = 200 // bytes of one of these names
)

// The space and the keys in the store. The files of a revision have the key filesPrefix and its
// digest.
const (
	space       = "history"
	indexKey    = "index"
	filesPrefix = "files/"
)

var room = state.Room{Keys: 4 * Revisions, Bytes: 2*maxStored + maxIndex}

var (
	// ErrDamaged is the error for stored data that mcpd did not write.
	ErrDamaged = errors.New("the stored history is damaged")
	// ErrNotStored is the error for a revision whose files are not stored.
	ErrNotStored = errors.New("the files of this revision are not stored")
	// ErrNotFound is the error for an unknown revision.
	ErrNotFound = errors.New("no such revision; see mcpd history")
)

// Revision is what a server serves.
type Revision struct {
	// Name is the revision that the server reports.
	Name string
	Time time.Time
	// Files are the files that the server has read, by their path in a project: tools.d/x.hcl.
	Files map[string][]byte
	// Bundle and Serial name the bundle that the files come from, if any.
	Bundle string
	Serial int64
}

// Entry describes a stored revision.
type Entry struct {
	// Digest is the digest of the files.
	Digest   string    `json:"digest"`
	Revision string    `json:"revision"`
	Time     time.Time `json:"time"`
	Bundle   string    `json:"bundle,omitempty"`
	Serial   int64     `json:"serial,omitempty"`
	Files    int       `json:"files"`
	Bytes    int64     `json:"bytes"`
	// Stored is the number of bytes that the compressed files take; 0 if they are not stored.
	Stored int64 `json:"stored"`
	// Added, Changed and Removed count the differences to the revision before, and Names are
	// the first of them, each after "+", "~" or "-". They are zero for the first revision.
	Added   int      `json:"added"`
	Changed int      `json:"changed"`
	Removed int      `json:"removed"`
	Names   []string `json:"names"`
}

// Digest returns the digest of a set of files.
func Digest(files map[string][]byte) string {
	h := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(files)) {
		fmt.Fprintf(h, "%q %x\n", name, sha256.Sum256(files[name]))
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Changes returns the differences between two sets of files: sorted paths after "+", "~" or "-".
func Changes(before, after map[string][]byte) (names []string) {
	for name, content := range after {
		switch old, known := before[name]; {
		case !known:
			names = append(names, "+"+name)
		case !bytes.Equal(old, content):
			names = append(names, "~"+name)
		}
	}
	for name := range before {
		if _, kept := after[name]; !kept {
			names = append(names, "-"+name)
		}
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(strings.Compare(a[1:], b[1:]), strings.Compare(a, b)) })
	return names
}

// Add stores a revision, unless its files are those of the newest one. A damaged history is
// replaced.
func Add(s state.Pairs, r Revision) error {
	digest := Digest(r.Files)
	before, err := List(s)
	if err != nil && !errors.Is(err, ErrDamaged) {
		return fmt.Errorf("add to history: %w", err)
	}
	if len(before) > 0 && before[0].Digest == digest {
		return nil
	}
	made := Entry{Digest: digest, Revision: r.Name, Time: r.Time.UTC().Truncate(time.Second), Bundle: r.Bundle, Serial: r.Serial, Files: len(r.Files), Names: []string{}}
	for _, content := range r.Files {
		made.Bytes += int64(len(content))
	}
	if len(before) > 0 {
		if old, err := files(s, before[0]); err == nil { // else the differences are unknown
			made.describe(Changes(old, r.Files))
		}
	}
	if made.Stored, err = put(s, digest, made, r.Files); err != nil {
		return fmt.Errorf("add to history: %w", err)
	}
	var kept []Entry
	err = s.ChangePair(space, indexKey, room, func(old state.Pair, _ time.Time) (state.Pair, error) {
		entries, err := decodeIndex(old.Value)
		if err != nil {
			entries = nil
		}
		if len(entries) > 0 && entries[0].Digest == digest { // another replica was faster
			kept = entries
			return old, nil
		}
		kept = bounded(append([]Entry{made}, entries...))
		text, err := json.Marshal(kept)
		return state.Pair{Value: text}, err
	})
	if err == nil {
		err = prune(s, kept)
	}
	if err != nil {
		return fmt.Errorf("add to history: %w", err)
	}
	return nil
}

func (e *Entry) describe(names []string) {
	for _, name := range names {
		switch name[0] {
		case '+':
			e.Added++
		case '~':
			e.Changed++
		case '-':
			e.Removed++
		}
		if len(e.Names) < maxNames && len(name) <= maxName {
			e.Names = append(e.Names, name)
		}
	}
}

// bounded returns the newest entries that are within the limits.
func bounded(entries []Entry) []Entry {
	stored := int64(0)
	for i, e := range entries {
		if stored += e.Stored; i == Revisions || stored > maxStored {
			return entries[:i]
		}
	}
	return entries
}

// put stores the files of a revision, and returns how many bytes they take: 0 if they are not
// stored because they are too large.
func put(s state.Pairs, digest string, e Entry, files map[string][]byte) (int64, error) {
	if e.Bytes > maxSize || e.Files > maxFiles {
		return 0, nil
	}
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	if err := errors.Join(json.NewEncoder(w).Encode(files), w.Close()); err != nil {
		return 0, fmt.Errorf("compress files: %w", err)
	}
	if packed.Len() > maxStored {
		return 0, nil
	}
	err := s.ChangePair(space, filesPrefix+digest, room, func(state.Pair, time.Time) (state.Pair, error) {
		return state.Pair{Value: packed.Bytes()}, nil
	})
	return int64(packed.Len()), err
}

// prune removes the files of revisions that are not in the list.
func prune(s state.Pairs, kept []Entry) error {
	keys, err := s.PairKeys(space, filesPrefix, "", 4*Revisions)
	for _, key := range keys {
		if slices.ContainsFunc(kept, func(e Entry) bool { return filesPrefix+e.Digest == key }) {
			continue
		}
		err = errors.Join(err, s.ChangePair(space, key, room, func(state.Pair, time.Time) (state.Pair, error) { return state.Pair{}, nil }))
	}
	return err
}

// List returns the stored revisions, newest first.
func List(s state.Pairs) ([]Entry, error) {
	index, err := s.Pair(space, indexKey)
	if err != nil {
		return nil, fmt.Errorf("read history: %w", err)
	}
	return decodeIndex(index.Value)
}

func decodeIndex(text []byte) (entries []Entry, err error) {
	if text == nil {
		return nil, nil
	}
	if jsonguard.Check(text, jsonguard.Limits{Bytes: maxIndex, Depth: 8, Tokens: 10_000}) != nil || json.Unmarshal(text, &entries) != nil || len(entries) > Revisions {
		return nil, ErrDamaged
	}
	for _, e := range entries {
		if sum, err := hex.DecodeString(e.Digest); err != nil || len(sum) != sha256.Size || e.Stored < 0 || len(e.Names) > maxNames {
			return nil, ErrDamaged
		}
	}
	return entries, nil
}

// Find returns the newest revision whose name or digest starts with prefix, or [ErrNotFound].
func Find(entries []Entry, prefix string) (Entry, error) {
	i := slices.IndexFunc(entries, func(e Entry) bool {
		return strings.HasPrefix(e.Revision, prefix) || strings.HasPrefix(e.Digest, prefix)
	})
	if prefix == "" || i < 0 {
		return Entry{}, ErrNotFound
	}
	return entries[i], nil
}

// Read returns the files of a revision, or an error that is [ErrNotStored] or [ErrDamaged]. Each
// path is valid by [fs.ValidPath].
func Read(s state.Pairs, e Entry) (map[string][]byte, error) {
	found, err := files(s, e)
	if err != nil {
		return nil, fmt.Errorf("read revision %.12s: %w", e.Revision, err)
	}
	return found, nil
}

func files(s state.Pairs, e Entry) (map[string][]byte, error) {
	packed, err := s.Pair(space, filesPrefix+e.Digest)
	switch {
	case err != nil:
		return nil, err
	case packed.Value == nil:
		return nil, ErrNotStored
	}
	r, err := gzip.NewReader(bytes.NewReader(packed.Value))
	if err != nil {
		return nil, ErrDamaged
	}
	text, err := io.ReadAll(io.LimitReader(r, maxText+1))
	if err != nil || jsonguard.Check(text, jsonguard.Limits{Bytes: maxText, Depth: 2, Tokens: 8*maxFiles + 100}) != nil {
		return nil, ErrDamaged
	}
	var found map[string][]byte
	if json.Unmarshal(text, &found) != nil || Digest(found) != e.Digest {
		return nil, ErrDamaged
	}
	for name := range found {
		if !fs.ValidPath(name) || name == "." {
			return nil, ErrDamaged
		}
	}
	return found, nil
}
