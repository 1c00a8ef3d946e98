// Package history keeps the files of the last revisions that a server has served, so that an
// operator can see what changed and get an earlier state back.
//
// A [Revision] is a set of files. [Add] stores it in the state store of the server, unless it is
// the newest one already, so that replicas with one database store the same files once. [List]
// returns the stored revisions, and [Read] the files of one. What is stored is checked when it is
// read: its key has the digest of the files.
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
	// MaxRevisions is the number of revisions that are stored.
	MaxRevisions = 10
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

var room = state.Room{Keys: 4 * MaxRevisions, Bytes: 2*maxStored + maxIndex}

var (
	// ErrDamaged is the error for stored data that mcpd did not write.
	ErrDamaged = errors.New("the stored history is damaged")
	// ErrNotStored is the error for a revision whose files are not stored.
	ErrNotStored = errors.New("the files of this revision are not stored")
	// ErrNotFound is the error for an unknown revision.
	ErrNotFound = errors.New("no such revision; see mcpd history")
	// ErrAmbiguous is the error for the start of several revisions.
	ErrAmbiguous = errors.New("several revisions start like this; name more of its digits")
	// ErrReplaced is the error of an Add that has replaced a damaged history.
	ErrReplaced = errors.New("the stored history was damaged, and a new one was begun")
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

// Sums are the digests of the contents of a set of files, in hexadecimal digits, by path.
type Sums map[string]string

// SumsOf returns the digests of files.
func SumsOf(files map[string][]byte) Sums {
	sums := Sums{}
	for name, content := range files {
		sums[name] = Sum(content)
	}
	return sums
}

// Sum returns the digest of a content in [Sums].
func Sum(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// Digest returns the digest of the whole set.
func (s Sums) Digest() string {
	h := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(s)) {
		fmt.Fprintf(h, "%q %s\n", name, s[name])
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Changes returns the differences between two sets of files: sorted paths after "+", "~" or "-".
func Changes(before, after Sums) (names []string) {
	for name, sum := range after {
		switch old, known := before[name]; {
		case !known:
			names = append(names, "+"+name)
		case old != sum:
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

// Add stores a revision, unless the newest one has the same files. It replaces a damaged
// history; the error is [ErrReplaced] then.
func Add(s state.Pairs, r Revision) error {
	err := add(s, r)
	if err != nil {
		return fmt.Errorf("add to history: %w", err)
	}
	return nil
}

func add(s state.Pairs, r Revision) error {
	sums := SumsOf(r.Files)
	made := Entry{Digest: sums.Digest(), Revision: r.Name, Time: r.Time.UTC().Truncate(time.Second), Bundle: r.Bundle, Serial: r.Serial, Files: len(r.Files), Names: []string{}}
	before, err := List(s)
	if err != nil && !errors.Is(err, ErrDamaged) {
		return err
	}
	if len(before) > 0 && before[0].Digest == made.Digest {
		return nil
	}
	for _, content := range r.Files {
		made.Bytes += int64(len(content))
	}
	if len(before) > 0 {
		if old, err := files(s, before[0]); err == nil { // else the differences are unknown
			made.describe(Changes(SumsOf(old), sums))
		}
	}
	if made.Stored, err = put(s, made, r.Files); err != nil {
		return err
	}
	var replaced error
	err = s.ChangePair(space, indexKey, room, func(old state.Pair, _ time.Time) (state.Pair, error) {
		replaced = nil
		entries, err := decodeIndex(old.Value)
		if err != nil {
			entries, replaced = nil, ErrReplaced
		}
		if len(entries) > 0 && entries[0].Digest == made.Digest { // another replica was faster
			return old, nil
		}
		text, err := json.Marshal(bounded(append([]Entry{made}, entries...)))
		return state.Pair{Value: text}, err
	})
	if err != nil {
		return err
	}
	if err := prune(s); err != nil {
		return err
	}
	if made.Stored > 0 { // another replica may have removed them before they were in the list
		keys, err := s.PairKeys(space, filesPrefix+made.Digest, "", 1)
		if err == nil && len(keys) == 0 {
			_, err = put(s, made, r.Files)
		}
		if err != nil {
			return err
		}
	}
	return replaced
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

// bounded returns the newest entries that are within the limits. Entries with the same files share
// what is stored.
func bounded(entries []Entry) []Entry {
	stored, known := int64(0), map[string]bool{}
	for i, e := range entries {
		if !known[e.Digest] {
			stored += e.Stored
		}
		if known[e.Digest] = true; i == MaxRevisions || stored > maxStored {
			return entries[:i]
		}
	}
	return entries
}

// put stores the files of a revision, and returns how many bytes they take: 0 if they are not
// stored because they are too large, or have a name that is no UTF-8 text.
func put(s state.Pairs, e Entry, files map[string][]byte) (int64, error) {
	if e.Bytes > maxSize || e.Files > maxFiles {
		return 0, nil
	}
	for name := range files {
		if !storable(name) {
			return 0, nil
		}
	}
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	if err := errors.Join(json.NewEncoder(w).Encode(files), w.Close()); err != nil {
		return 0, fmt.Errorf("compress files: %w", err)
	}
	if packed.Len() > maxStored {
		return 0, nil
	}
	err := s.ChangePair(space, filesPrefix+e.Digest, room, func(state.Pair, time.Time) (state.Pair, error) {
		return state.Pair{Value: packed.Bytes()}, nil
	})
	return int64(packed.Len()), err
}

// storable reports whether a path stays in the project and survives the encoding.
func storable(name string) bool { return fs.ValidPath(name) && name != "." }

// prune removes the files of revisions that are not in the list. It reads the list after the keys:
// another replica may have added a revision.
func prune(s state.Pairs) error {
	keys, err := s.PairKeys(space, filesPrefix, "", room.Keys)
	if err != nil {
		return err
	}
	kept, err := List(s)
	if err != nil {
		return err
	}
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
	if jsonguard.Check(text, jsonguard.Limits{Bytes: maxIndex, Depth: 8, Tokens: 10_000}) != nil || json.Unmarshal(text, &entries) != nil || len(entries) > MaxRevisions {
		return nil, ErrDamaged
	}
	for _, e := range entries {
		if sum, err := hex.DecodeString(e.Digest); err != nil || len(sum) != sha256.Size || e.Stored < 0 || len(e.Names) > maxNames {
			return nil, ErrDamaged
		}
	}
	return entries, nil
}

// Find returns the newest revision whose name or digest starts with prefix, or an error that is
// [ErrNotFound] or [ErrAmbiguous].
func Find(entries []Entry, prefix string) (found Entry, err error) {
	if prefix == "" {
		return found, ErrNotFound
	}
	for _, e := range entries {
		switch {
		case !strings.HasPrefix(e.Revision, prefix) && !strings.HasPrefix(e.Digest, prefix):
		case found.Digest == "":
			found = e
		case found.Digest != e.Digest:
			return Entry{}, ErrAmbiguous
		}
	}
	if found.Digest == "" {
		return found, ErrNotFound
	}
	return found, nil
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
	case len(packed.Value) > maxStored:
		return nil, ErrDamaged
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
	if json.Unmarshal(text, &found) != nil || SumsOf(found).Digest() != e.Digest {
		return nil, ErrDamaged
	}
	for name := range found {
		if !storable(name) {
			return nil, ErrDamaged
		}
	}
	return found, nil
}
