// Package bundle ships the files of a server as one signed file, and keeps a server on the
// newest one.
//
// A [Bundle] is a tar file: a [Manifest] with the digest of every file, the signatures of the
// manifest, and the files. [Pack] writes it, [Read] reads it, and [Trust] verifies it. A
// [Follower] takes bundles from a file or a web server, activates them, and keeps the last two
// in a directory.
package bundle

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"testing/fstest"
	"time"

	"github.com/mcpd/mcpd/internal/base/jsonguard"
	"github.com/mcpd/mcpd/internal/base/truncate"
)

// Limits of a bundle.
const (
	// MaxSize bounds the whole file, in bytes.
	MaxSize       = 64 << 20
	maxFiles      = 10_000
	maxManifest   = 4 << 20
	maxTokens     = 8*maxFiles + 100 // of JSON, for a manifest with all files
	maxSignatures = 32
	maxSignature  = 1024
	maxName       = 64
	maxVersion    = 64
	maxQuoted     = 200 // of an error
	maxPath       = 200
	// maxSerial is the largest integer that every JSON decoder reads exactly.
	maxSerial = 1<<53 - 1
)

// format is the version of the format. A later version may change everything behind it.
const format = "mcpd-bundle/1"

// Entries of the tar file before the files.
const (
	manifestEntry   = "manifest.json"
	signaturesEntry = "signatures.json"
)

// Manifest describes a bundle. Its encoding is what signatures sign.
type Manifest struct {
	Format string `json:"format"`
	// Name says what the bundle is for. Serials are compared between bundles of one name.
	Name   string `json:"name"`
	Serial int64  `json:"serial"`
	// MinVersion is the lowest version of mcpd that may load the bundle, as 1.2.3; "" for any.
	MinVersion string    `json:"min_version,omitempty"`
	Created    time.Time `json:"created"`
	// Expires is the time from which the bundle must not be activated; zero for never.
	Expires time.Time `json:"expires,omitzero"`
	// Rollout says which appliances take the bundle; nil for all. A version of mcpd that does not
	// know it refuses the manifest.
	Rollout *Rollout `json:"rollout,omitempty"`
	// Files are all files, in bytewise order of their paths.
	Files []File `json:"files"`
}

// File is a file of a bundle.
type File struct {
	Path   string `json:"path"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

// Bundle is a bundle in memory. It is immutable.
type Bundle struct {
	Manifest Manifest
	// Digest is the SHA-256 of the manifest, in hexadecimal. It names the content: adding a
	// signature does not change it.
	Digest string

	manifest   []byte // as signed
	signatures []string
	files      fstest.MapFS
}

// Files returns the files: mcpd.hcl, mcpd.lock and *.mcpdvars, and tools.d with the tool files.
func (b *Bundle) Files() fs.FS { return packed{b.files, &b.Manifest} }

// packed are the files of a bundle with its manifest.
type packed struct {
	fstest.MapFS
	manifest *Manifest
}

// Pack returns a bundle of the files of a project: mcpd.hcl, mcpd.lock, *.mcpdvars and
// everything in tools.d that is not hidden. about has the other fields of the manifest. Equal
// arguments produce equal bytes.
func Pack(project fs.FS, about Manifest) ([]byte, error) {
	about.Format, about.Files = format, []File{}
	about.Created, about.Expires = about.Created.UTC().Truncate(time.Second), about.Expires.UTC().Truncate(time.Second)
	files, total := fstest.MapFS{}, int64(0)
	err := fs.WalkDir(project, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && name != "." && (name != "tools.d" && !strings.HasPrefix(name, "tools.d/") || isHidden(name)):
			return fs.SkipDir
		case entry.IsDir() || !belongs(name):
			return nil
		case !entry.Type().IsRegular():
			return fmt.Errorf("%s is not a regular file", name)
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		if total += info.Size(); total > MaxSize || len(about.Files) == maxFiles {
			return fmt.Errorf("the files exceed the limit of %d bytes or %d files", MaxSize, maxFiles)
		}
		content, err := fs.ReadFile(project, name)
		if err != nil {
			return err
		}
		sum := sha256.Sum256(content)
		about.Files = append(about.Files, File{name, int64(len(content)), hex.EncodeToString(sum[:])})
		files[name] = &fstest.MapFile{Data: content}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("pack bundle: %w", err)
	}
	slices.SortFunc(about.Files, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	b, err := newBundle(about, nil, files)
	if err == nil {
		err = b.check()
	}
	if err != nil {
		return nil, fmt.Errorf("pack bundle: %w", err)
	}
	return b.encode()
}

// Read reads a bundle. It accepts only the bytes that [Pack] and [Bundle.Sign] write, so that no
// two programs can read a bundle in different ways: no other kind of entry, order, mode or
// padding, and nothing before or after. The digest of each file is checked; signatures are not.
func Read(data []byte) (*Bundle, error) {
	b, err := read(data)
	if err != nil {
		return nil, fmt.Errorf("read bundle: %w", err)
	}
	return b, nil
}

func read(data []byte) (*Bundle, error) {
	if len(data) > MaxSize {
		return nil, fmt.Errorf("it has more than %d bytes", MaxSize)
	}
	archive, left := tar.NewReader(bytes.NewReader(data)), int64(len(data))
	next := func(want string) ([]byte, error) {
		head, err := archive.Next()
		switch {
		case err != nil:
			return nil, fmt.Errorf("no entry %s: %w", want, err)
		case head.Typeflag != tar.TypeReg || head.Name != want:
			return nil, fmt.Errorf("an entry is not the file %s", want)
		case head.Format != tar.FormatUSTAR || len(head.PAXRecords) > 0: // a sparse file may expand to gigabytes
			return nil, fmt.Errorf("the entry %s has another format than ustar", want)
		case head.Size > left:
			return nil, fmt.Errorf("the entry %s is larger than the bundle", want)
		}
		left -= head.Size
		return io.ReadAll(archive)
	}
	text, err := next(manifestEntry)
	if err != nil {
		return nil, err
	}
	var m Manifest
	if err := decode(text, &m); err != nil {
		return nil, fmt.Errorf("the manifest is not valid: %w", err)
	}
	if m.Format != format {
		return nil, fmt.Errorf("its format is not %s", format)
	}
	list, err := next(signaturesEntry)
	if err != nil {
		return nil, err
	}
	var signatures []string
	if err := decode(list, &signatures); err != nil {
		return nil, fmt.Errorf("the signatures are not valid: %w", err)
	}
	files := make(fstest.MapFS, min(len(m.Files), maxFiles))
	b, err := newBundle(m, signatures, files)
	if err == nil {
		err = b.check()
	}
	if err != nil {
		return nil, err
	}
	for _, f := range m.Files {
		content, err := next(f.Path)
		if err != nil {
			return nil, err
		}
		if sum := sha256.Sum256(content); int64(len(content)) != f.Size || hex.EncodeToString(sum[:]) != f.SHA256 {
			return nil, fmt.Errorf("the file %s differs from the manifest", f.Path)
		}
		files[f.Path] = &fstest.MapFile{Data: content, Mode: 0o444}
	}
	again, err := b.encode()
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(again, data) {
		return nil, errors.New("its encoding differs from the encoding of mcpd, or bytes follow its end")
	}
	return b, nil
}

// decode decodes JSON without unknown members. That each text is the only encoding of its value
// is checked when the whole bundle is compared.
func decode(text []byte, into any) error {
	if err := jsonguard.Check(text, jsonguard.Limits{Bytes: maxManifest, Tokens: maxTokens}); err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return errors.New(truncate.Start(err.Error(), maxQuoted)) // it quotes unknown members
	}
	return nil
}

// newBundle returns a bundle with its encoded manifest.
func newBundle(m Manifest, signatures []string, files fstest.MapFS) (*Bundle, error) {
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode manifest: %w", err)
	}
	files["tools.d"] = &fstest.MapFile{Mode: fs.ModeDir | 0o555} // even if it is empty
	sum := sha256.Sum256(text)
	return &Bundle{Manifest: m, Digest: hex.EncodeToString(sum[:]), manifest: text, signatures: signatures, files: files}, nil
}

// check returns an error unless the manifest and the signatures are within the limits.
func (b *Bundle) check() error {
	m := &b.Manifest
	switch {
	case !isName(m.Name):
		return fmt.Errorf("the name is not 1 to %d of a-z, 0-9, \".\", \"_\" and \"-\"", maxName)
	case m.Serial < 1 || m.Serial > maxSerial:
		return fmt.Errorf("the serial number is not between 1 and %d", int64(maxSerial))
	case m.MinVersion != "" && !isVersion(m.MinVersion):
		return fmt.Errorf("the minimum version has not the form 1.2.3, in up to %d letters, digits, \".\", \"+\" and \"-\"", maxVersion)
	case !m.Expires.IsZero() && !m.Expires.After(m.Created):
		return errors.New("it expires before it is created")
	case m.Files == nil || len(m.Files) > maxFiles:
		return fmt.Errorf("it has more than %d files, or no list of files", maxFiles)
	case len(b.signatures) > maxSignatures || slices.ContainsFunc(b.signatures, func(s string) bool { return len(s) > maxSignature }):
		return fmt.Errorf("it has more than %d signatures, or one with more than %d bytes", maxSignatures, maxSignature)
	}
	if err := m.Rollout.check(); err != nil {
		return err
	}
	known, left := make(map[string]bool, len(m.Files)), int64(MaxSize)
	for i, f := range m.Files {
		switch {
		case f.Size < 0 || f.Size > left:
			return fmt.Errorf("the size of a file is negative, or the files have more than %d bytes", MaxSize)
		case !belongs(f.Path) || !isPlain(f.Path):
			return fmt.Errorf("%.*q is not the path of a file of a bundle: mcpd.hcl, mcpd.lock, *.mcpdvars, or below tools.d, with up to %d printable ASCII characters", maxPath, f.Path, maxPath)
		case i > 0 && m.Files[i-1].Path >= f.Path:
			return fmt.Errorf("the file %s is listed twice or out of order", f.Path)
		}
		for folder := path.Dir(f.Path); folder != "."; folder = path.Dir(folder) {
			if known[folder] {
				return fmt.Errorf("%s is a file and a directory", folder)
			}
		}
		known[f.Path], left = true, left-f.Size
	}
	if !known["mcpd.hcl"] { // else a server would lose its policies without a word
		return errors.New("it has no mcpd.hcl")
	}
	return nil
}

// encode returns the bundle as a file.
func (b *Bundle) encode() ([]byte, error) {
	list, err := json.MarshalIndent(append([]string{}, b.signatures...), "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode signatures: %w", err)
	}
	var out bytes.Buffer
	archive := tar.NewWriter(&out)
	put := func(name string, content []byte) {
		if err == nil {
			err = archive.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: int64(len(content)), Mode: 0o644, ModTime: time.Unix(0, 0), Format: tar.FormatUSTAR})
		}
		if err == nil {
			_, err = archive.Write(content)
		}
	}
	put(manifestEntry, b.manifest)
	put(signaturesEntry, list)
	for _, f := range b.Manifest.Files {
		put(f.Path, b.files[f.Path].Data)
	}
	switch err = errors.Join(err, archive.Close()); {
	case err != nil:
		return nil, fmt.Errorf("encode bundle: %w", err)
	case out.Len() > MaxSize:
		return nil, fmt.Errorf("the bundle has more than %d bytes", MaxSize)
	}
	return out.Bytes(), nil
}

// belongs reports whether a bundle may have a file with this path.
func belongs(name string) bool {
	if !fs.ValidPath(name) || isHidden(name) {
		return false
	}
	below := strings.HasPrefix(name, "tools.d/")
	return below || name == "mcpd.hcl" || name == "mcpd.lock" || strings.HasSuffix(name, ".mcpdvars") && !strings.Contains(name, "/")
}

// isHidden reports whether a part of a path starts with a dot.
func isHidden(name string) bool { return strings.HasPrefix(name, ".") || strings.Contains(name, "/.") }

// isPlain reports whether every tar program writes a path in the same way.
func isPlain(name string) bool {
	return len(name) <= maxPath && !strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r > '~' || r == '\\' })
}

func isName(name string) bool {
	return name != "" && len(name) <= maxName && !strings.HasPrefix(name, ".") && strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789._-") == ""
}

// isVersion reports whether a text is a version of three numbers, with no other characters than
// versions have.
func isVersion(text string) bool {
	_, ok := versionOf(text)
	return ok && len(text) <= maxVersion && strings.Trim(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.+-") == ""
}

// versionOf returns the three numbers of a version. It ignores a leading v and the part after -
// or +, so that 1.2.0-rc.1 counts as 1.2.0.
func versionOf(text string) (numbers [3]int, ok bool) {
	text = strings.TrimPrefix(text, "v")
	if i := strings.IndexAny(text, "-+"); i >= 0 {
		text = text[:i]
	}
	parts := strings.Split(text, ".")
	for i, part := range parts {
		if i == 3 || part == "" || len(part) > 6 || strings.Trim(part, "0123456789") != "" {
			return numbers, false
		}
		for _, digit := range part {
			numbers[i] = numbers[i]*10 + int(digit-'0')
		}
	}
	return numbers, len(parts) == 3
}

// Usable returns an error if a bundle must not be activated by a version of mcpd at a time.
func (m *Manifest) Usable(version string, now time.Time) error {
	have, ok := versionOf(version)
	need, _ := versionOf(m.MinVersion)
	switch {
	case !m.Expires.IsZero() && !now.Before(m.Expires):
		return fmt.Errorf("it expired at %s", m.Expires.Format(time.RFC3339))
	case m.MinVersion != "" && (!ok || slices.Compare(have[:], need[:]) < 0):
		return fmt.Errorf("it needs mcpd %s, and this is %s", m.MinVersion, version)
	}
	return nil
}
