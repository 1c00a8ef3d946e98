package catalog

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"path"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/language/definition"
	"github.com/mcpd/mcpd/internal/language/grant"
)

// folder returns what there is to compile of the files that a folder offers.
func (c *compiler) folder(def *definition.Folder) (jobs []job) {
	if def.Root == "" {
		return nil // whoever decoded the file has told
	}
	files, err := c.tree.List(def.Root)
	if err != nil {
		c.found.report(diag.List{{
			Code: "unreadable-folder", Range: def.RootRange,
			Summary: fmt.Sprintf("the folder %q cannot be read: %v", def.Root, err), Detail: "correct the path, or make the folder",
		}})
		return nil
	}
	offered := 0
	for _, file := range files {
		if file.Size > def.MaxFile || !def.Offers(file.Name) {
			continue
		}
		offered++
		name := path.Join(def.Root, file.Name)
		content, hash, err := c.tree.Open(name)
		switch {
		case errors.Is(err, fs.ErrNotExist) || int64(len(content)) > def.MaxFile:
			continue // it has gone, or grown, since the folder was listed
		case err != nil:
			c.found.report(diag.List{{
				Code: "unreadable-file", Range: def.RootRange,
				Summary: fmt.Sprintf("the file %q of the folder cannot be read: %v", name, err), Detail: "make it a file that mcpd may read and that not every user may write, or exclude it",
			}})
			continue
		}
		key := sha256.Sum256(append(append(append([]byte("file\x00"), def.Hash[:]...), hash[:]...), file.Name...))
		jobs = append(jobs, job{key, func() *compiledItem { return c.file(def, file.Name, content, definition.Hash(hash)) }})
	}
	if offered == 0 && len(files) > 0 {
		c.found.report(diag.List{{
			Severity: diag.Warning, Code: "pattern-matches-nothing", Range: def.RootRange,
			Summary: fmt.Sprintf("no file of the folder %q is a resource", def.Root),
			Detail:  "look at glob, exclude and max_file: ** stands for any folders, as in \"**/*.md\"",
		}})
	}
	return jobs
}

// file returns the resource that a file of a folder is.
func (c *compiler) file(def *definition.Folder, name string, content []byte, hash definition.Hash) *compiledItem {
	uri := def.URI(name)
	stands := def.Content(name, content)
	item := resourceItem(Resources, def.Name, uri, "", def.Description, definition.Call{Labels: def.Labels, Bounds: definition.Bounds{Timeout: definition.DefaultTimeout}})
	item.Icons, item.Where, item.folder = def.Icons, def.NameRange, def
	item.Offer = &Offer{ListedAs: name, MIMEType: stands.MIMEType, Size: int64(len(content)), Annotations: annotationsOf(def.Annotations)}
	item.Body, item.Steady = &stored{uri: uri, content: stands}, true
	k := c.begin(item, def.Meaning)
	k.key.Write([]byte(uri))
	k.key.Write(hash[:])
	return k.done(grant.Set{}, nil)
}

// shadows reports a file of a folder whose URI a file of another folder has,
// once for each two folders. That of a resource block is meant to win, and two
// folders of one prefix crossref has reported.
func (k *linker) shadows(first, second *Item) {
	if first.folder == nil || second.folder == nil || first.folder.URIPrefix == second.folder.URIPrefix {
		return
	}
	pair := [2]*definition.Folder{first.folder, second.folder}
	if k.shadowed[pair] {
		return
	}
	k.shadowed[pair] = true
	k.found.report(diag.List{{
		Code: "duplicate-uri", Range: second.folder.PrefixRange,
		Summary: fmt.Sprintf("files of the folders %q and %q have the same URI, %q", first.Name, second.Name, first.Address),
		Detail:  "change one of the two prefixes, or exclude the file from one of the folders",
		Notes:   []diag.Note{{Range: first.folder.PrefixRange, Message: "the prefix of the other folder"}},
	}})
}
