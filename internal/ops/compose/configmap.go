package compose

import (
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/mcpd/mcpd/internal/base/yaml"
)

const (
	// maxConfigMap is what one ConfigMap of tools holds here, and what mcpd.hcl takes of
	// one at most; Kubernetes takes largestConfigMap of one.
	maxConfigMap     = 512 << 10
	largestConfigMap = 1 << 20
	// MaxTools is what all files of the tools folder have together at most, in bytes.
	MaxTools = 8 << 20
)

// bundle is a ConfigMap of tool files. Its keys cannot have slashes: which file
// stands at which path is told where it is mounted.
type bundle struct {
	name  string
	keys  []string
	paths []string
	texts [][]byte
	size  int
}

// packed returns the tool files in ConfigMaps of which each has room for its own.
// There is one at least.
func packed(files map[string][]byte) []bundle {
	list := []bundle{{name: toolsName}}
	taken := map[string]int{}
	for _, path := range slices.Sorted(maps.Keys(files)) {
		last := &list[len(list)-1]
		size := len(path) + len(files[path])
		if last.size > 0 && last.size+size > maxConfigMap {
			list = append(list, bundle{name: fmt.Sprintf("%s-%d", toolsName, len(list)+1)})
			last = &list[len(list)-1]
			clear(taken)
		}
		last.size += size
		last.keys, last.paths, last.texts = append(last.keys, key(path, taken)), append(last.paths, path), append(last.texts, files[path])
	}
	return list
}

// key returns a key for the path of a file that is not taken, and takes it. taken
// counts the paths that would have a key, so that many of one end as soon as few.
func key(path string, taken map[string]int) string {
	text := strings.Map(func(c rune) rune {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '.':
			return c
		}
		return '_'
	}, path)
	name := text
	for taken[name] > 0 {
		taken[text]++
		suffix := fmt.Sprintf("_%d", taken[text])
		name = text[:min(len(text), maxKey-len(suffix))] + suffix
	}
	taken[name] = 1
	return name
}

// projection returns the files as a source of a projected volume.
func (b bundle) projection() *yaml.Map {
	var items []any
	for i, key := range b.keys {
		items = append(items, mapping(is("key", key), is("path", b.paths[i])))
	}
	return mapping(is("configMap", mapping(is("name", b.name), is("items", items))))
}

// configMaps returns mcpd.hcl, its lock and the tools as Kubernetes keeps them. The
// first two are in one ConfigMap, so that mcpd sees neither without the other.
func configMaps(d *Deployment) (File, error) {
	config := bundle{name: configName, keys: []string{configFile}, texts: [][]byte{d.ConfigText}}
	if d.LockText != nil {
		config.keys, config.texts = append(config.keys, lockFile), append(config.texts, d.LockText)
	}
	documents := []*yaml.Map{d.configMap(config)}
	for _, b := range packed(d.ToolFiles) {
		documents = append(documents, d.configMap(b))
	}
	return file(configMapsFile, written+"\nmcpd loads files that change here within a minute or two, without a restart.", documents...)
}

// configMap returns the ConfigMap of a bundle. What is not text stands in it in
// base64.
func (d *Deployment) configMap(b bundle) *yaml.Map {
	data, binary := mapping(), mapping()
	for i, key := range b.keys {
		if text := b.texts[i]; utf8.Valid(text) {
			joined(data, is(key, string(text)))
		} else {
			joined(binary, is(key, base64.StdEncoding.EncodeToString(text)))
		}
	}
	return d.object("v1", "ConfigMap", b.name,
		is("data", data).when(len(data.Names) > 0),
		is("binaryData", binary).when(len(binary.Names) > 0),
	)
}
