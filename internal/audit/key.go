package audit

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"strings"
)

// keySize is the length of a key in bytes.
const keySize = 32

// keyPath returns where the key of a log is kept that was given none.
func keyPath(path string) string { return path + ".key" }

// keys are the two that are derived from one: knowing a digest of arguments
// says nothing about the chain.
type keys struct{ chain, digest []byte }

func derive(key []byte) keys {
	return keys{chain: derived(key, "mcpd audit chain"), digest: derived(key, "mcpd audit arguments")}
}

func derived(key []byte, purpose string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(purpose))
	return h.Sum(nil)
}

// readKey reads the key that is kept beside a log.
func readKey(d disk, path string) ([]byte, error) {
	name := keyPath(path)
	f, err := d.open(name, 0)
	if err != nil {
		return nil, err
	}
	if err = errors.Join(checkPrivate(f, name), f.Close()); err != nil {
		return nil, err
	}
	text, err := readAll(d, name, 2*keySize+2)
	if err != nil {
		return nil, err
	}
	key, err := hex.DecodeString(strings.TrimSpace(string(text)))
	if err != nil || len(key) != keySize {
		return nil, fmt.Errorf("%s holds no key, which is %d hexadecimal digits", name, 2*keySize)
	}
	return key, nil
}

// makeKey makes a key and keeps it beside a log.
func makeKey(d disk, path string) ([]byte, error) {
	key := make([]byte, keySize)
	rand.Read(key)
	if err := replace(d, keyPath(path), []byte(hex.EncodeToString(key)+"\n")); err != nil {
		return nil, err
	}
	return key, d.syncFolder(folderOf(path))
}

// ownKey returns the key beside a log, and makes it where there is neither a
// key nor a log that would have been written with it.
func ownKey(d disk, path string, written bool) ([]byte, error) {
	key, err := readKey(d, path)
	if !errors.Is(err, fs.ErrNotExist) {
		return key, err
	}
	if written {
		return nil, fmt.Errorf("the key of the log is gone; put it back, or move the log away to begin a new one: %w", err)
	}
	return makeKey(d, path)
}
