package main

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// canary is a secret that must not leak.
type canary struct {
	name string
	// core is the part of value that no escaping changes.
	core, value string
}

// coreBegins is the prefix of all cores.
const coreBegins = "Canary"

// newCanary returns a unique canary. Every second one contains characters that URLs,
// HTML, JSON and shells escape.
func newCanary(name string, number int) canary {
	c := canary{name: name, core: fmt.Sprintf(coreBegins+"%02d%016x", number, rand.Uint64())}
	c.value = c.core
	if number%2 == 1 {
		c.value = `<&"` + c.core + `/+=%'\ >~`
	}
	return c
}

// forms returns the encodings to search for. The core is alphanumeric, so URLs, HTML
// and JSON contain it unchanged.
func (c canary) forms() []string {
	backwards := []byte(c.core)
	slices.Reverse(backwards)
	digits := hex.EncodeToString([]byte(c.core))
	list := []string{c.core, string(backwards), digits, strings.ToUpper(digits)}
	for before := range 3 {
		padded := append(make([]byte, before), c.core...)
		first, last := (8*before+5)/6, 8*len(padded)/6
		list = append(list, base64.RawStdEncoding.EncodeToString(padded)[first:last], base64.RawURLEncoding.EncodeToString(padded)[first:last])
	}
	return list
}

// canaryCheck holds all canaries and all visible output of a server.
type canaryCheck struct {
	all []canary

	mu   sync.Mutex
	seen map[string][]string // text by source
}

// newSecret adds a new canary.
func (a *canaryCheck) newSecret(name string) canary {
	c := newCanary(name, len(a.all))
	a.all = append(a.all, c)
	return c
}

// addOutput adds visible output.
func (a *canaryCheck) addOutput(where string, text string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.seen == nil {
		a.seen = map[string][]string{}
	}
	a.seen[where] = append(a.seen[where], text)
}

// leaks returns the names of leaked canaries with their sources.
func (a *canaryCheck) leaks() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	var found []string
	begins := canary{core: coreBegins}.forms() // each form of a canary contains one of these
	for where, texts := range a.seen {
		text := strings.Join(texts, "\x00")
		if !slices.ContainsFunc(begins, func(form string) bool { return strings.Contains(text, form) }) {
			continue
		}
		for _, c := range a.all {
			for _, form := range c.forms() {
				if i := strings.Index(text, form); i >= 0 {
					around := text[max(0, i-300):min(len(text), i+len(form)+100)]
					found = append(found, fmt.Sprintf("%s as %s in %s: …%q…", c.name, form, where, around))
				}
			}
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// addFiles adds the files below a directory, which must not be empty.
func (a *canaryCheck) addFiles(t *testing.T, root string) {
	t.Helper()
	files := 0
	err := filepath.WalkDir(root, func(path string, entry os.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(path)
		a.addOutput("file "+path, path+"\n"+string(content))
		files++
		return err
	})
	if err != nil || files == 0 {
		t.Errorf("%d files in %s: %v", files, root, err)
	}
}
