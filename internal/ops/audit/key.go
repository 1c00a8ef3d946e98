package audit

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/mcpd/mcpd/internal/base/jsonguard"
)

const (
	// keySize is the length of a key in bytes.
	keySize = 32
	// maxKeyFile is the maximum length of a key file in bytes.
	maxKeyFile = 1 << 10
)

func keyPath(path string) string { return path + ".key" }

// keys holds the two keys derived from the key of the log. A digest of arguments
// reveals nothing about the chain.
type keys struct{ chain, digest []byte }

func derive(key []byte) keys {
	return keys{chain: derived(key, "mcpd audit chain"), digest: derived(key, "mcpd audit arguments")}
}

func derived(key []byte, purpose string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(purpose))
	return h.Sum(nil)
}

// keyState is the relation of a key file to its log.
type keyState int

const (
	// keyBare is a key without a mark, written by an earlier version or by the
	// operator.
	keyBare keyState = iota
	// keyUnused was created for a log that was not opened yet.
	keyUnused
	// keyUsed has opened a log, which has had a head since then.
	keyUsed
	// keyForged has a mark that was not written with the key.
	keyForged
)

// keyFile is the content of a key file: the key as hexadecimal digits on the first
// line, and the mark on the second. The mark is a JSON object with the number and the
// code of a record that was durable when the mark was written, signed with the key. The
// log must reach at least that record.
type keyFile struct {
	key   []byte
	state keyState
	// last is the latest record in the mark; its number is 0 if there was none.
	last chainEntry
	// readOnly reports that the file must not be written.
	readOnly bool
}

// expectsLog reports whether the log or its head must exist. A bare read-only key comes
// from the operator, who may start a new log with it.
func (k keyFile) expectsLog() bool {
	return k.state == keyUsed || k.state == keyForged || k.state == keyBare && !k.readOnly
}

// chain returns the chain that signs marks, which differs from the chain of lines.
func (k keyFile) chain() *hashChain { return newChain(derived(k.key, "mcpd audit mark")) }

func (k keyFile) encode() []byte {
	mark := []byte(`{"unused":true`)
	if k.state == keyUsed {
		mark = strconv.AppendUint([]byte(`{"signed":`), k.last.seq, 10)
		mark = append(hex.AppendEncode(append(mark, `,"last":"`...), k.last.mac[:]), '"')
	}
	return append(append(hex.AppendEncode(nil, k.key), '\n'), k.chain().sign(mark)...)
}

// decodeMark decodes the second line of a key file.
func (k *keyFile) decodeMark(text []byte) {
	k.state = keyForged
	if !k.chain().signed(text) || jsonguard.Check(text, jsonguard.Limits{Bytes: maxKeyFile}) != nil {
		return
	}
	var read struct {
		Unused bool
		Signed uint64
		Last   string
	}
	if json.Unmarshal(text, &read) != nil {
		return
	}
	if read.Unused {
		k.state = keyUnused
		return
	}
	if n, err := hex.Decode(k.last.mac[:], []byte(read.Last)); err == nil && n == len(k.last.mac) {
		k.state, k.last.seq = keyUsed, read.Signed
	}
}

func readKey(d disk, path string) (k keyFile, err error) {
	name := keyPath(path)
	f, err := d.open(name, os.O_RDONLY)
	if err != nil {
		return k, err
	}
	info, statErr := f.Stat()
	if err = errors.Join(checkPrivate(f, name), statErr, f.Close()); err != nil {
		return k, err
	}
	text, err := readAll(d, name, maxKeyFile)
	if err != nil {
		return k, err
	}
	const writable = 0o200
	k.readOnly = info.Mode().Perm()&writable == 0
	digits, mark, _ := bytes.Cut(bytes.TrimSpace(text), []byte("\n"))
	k.key, err = hex.DecodeString(string(bytes.TrimSpace(digits)))
	if err != nil || len(k.key) != keySize {
		return k, fmt.Errorf("%s does not hold a key of %d hexadecimal digits", name, 2*keySize)
	}
	if mark = bytes.TrimSpace(mark); len(mark) > 0 {
		k.decodeMark(mark)
	}
	return k, nil
}

// write replaces the key file. It never writes into an existing file, which another
// process could have opened.
func (k keyFile) write(d disk, path string) error {
	name := keyPath(path)
	fresh := name + ".new"
	err := replace(d, name, k.encode(), os.O_EXCL, file.sync)
	if errors.Is(err, fs.ErrExist) {
		if err = d.remove(fresh); err == nil {
			err = replace(d, name, k.encode(), os.O_EXCL, file.sync)
		}
	}
	if err != nil {
		// The rename may have failed for good; do not leave a second copy of the key.
		_ = d.remove(fresh)
	}
	return err
}

func makeKey(d disk, path string) (keyFile, error) {
	k := keyFile{key: make([]byte, keySize), state: keyUnused}
	rand.Read(k.key)
	if err := k.write(d, path); err != nil {
		return k, err
	}
	return k, d.syncFolder(filepath.Dir(path))
}

// ownKey returns the key beside a log. It creates a key if there is neither a key nor a
// log.
func ownKey(d disk, path string, written bool) (keyFile, error) {
	k, err := readKey(d, path)
	if !errors.Is(err, fs.ErrNotExist) {
		return k, err
	}
	if written {
		return k, fmt.Errorf("the key of the log is missing; restore it, or move the log away to start a new one: %w", err)
	}
	return makeKey(d, path)
}

// marker keeps the mark of a key file up to date.
type marker struct {
	disk disk
	path string
	file keyFile
}

// begin writes the first mark, after the head exists. It reports whether the file is
// writable: a mounted key may be read-only.
func (m *marker) begin(at chainEntry) (writable bool, err error) {
	if m.file.readOnly {
		return false, nil
	}
	if m.file.state != keyUsed {
		// The mark implies a head, even after a power loss.
		if err := m.disk.syncFolder(filepath.Dir(m.path)); err != nil {
			return true, err
		}
	}
	err = m.reach(at)
	for _, readOnly := range []error{fs.ErrPermission, syscall.EROFS, syscall.EBUSY} {
		if errors.Is(err, readOnly) {
			return false, nil
		}
	}
	return true, err
}

// reach stores a durable record in the mark.
func (m *marker) reach(at chainEntry) error {
	if m.file.state == keyUsed && m.file.last == at {
		return nil
	}
	next := m.file
	next.state, next.last = keyUsed, at
	if err := next.write(m.disk, m.path); err != nil {
		return fmt.Errorf("update mark in the key file: %w", err)
	}
	m.file = next
	return nil
}
