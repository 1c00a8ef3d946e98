package catalog

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"path"
	"sync"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/hclfile"
	"github.com/mcpd/mcpd/internal/reply"
	"github.com/mcpd/mcpd/scripting"
)

// noArguments is the schema of the arguments of a resource, for policies.
const noArguments = `{"type":"object","properties":{},"additionalProperties":false}`

// resourceItem returns what all items that are no tools have in common.
func resourceItem(kind Kind, name, address, title, description string, call hclfile.Call) *Item {
	yes, no := true, false
	item := &Item{
		Kind: kind, Name: name, Address: address, Title: title, Labels: call.Labels, Timeout: call.Timeout, AskTimeout: call.AskTimeout,
		Idempotent: true, ReadOnly: &yes, Destructive: &no, PolicySchema: json.RawMessage(noArguments),
		Offer: &Offer{ListedAs: name, Size: -1},
	}
	if description != "" {
		item.Description = &description
	}
	return item
}

func (c *compiler) resource(def *hclfile.Resource) *compiledItem {
	item := resourceItem(Resources, def.Name, def.URI, def.Title, def.Description, def.Call)
	item.Icons, item.Where = def.Icons, def.NameRange
	item.Offer.MIMEType, item.Offer.Annotations = def.MIMEType, annotationsOf(def.Annotations)
	if def.Size != nil {
		item.Offer.Size = *def.Size
	}
	k := c.begin(item, def.Meaning)
	switch {
	case def.Content != nil:
		item.Body, item.Steady = &stored{uri: def.URI, content: *def.Content}, true
	case def.Run != nil:
		src := scripting.Source{Name: def.Name, Kind: scripting.Resource, Inputs: []string{}}
		item.Body = k.reading(src, *def.Run, def.Call, def.MIMEType)
	}
	return k.done()
}

// reading compiles the body of a resource or a template.
func (k *compiling) reading(src scripting.Source, run hclfile.Body, call hclfile.Call, mimeType string) Body {
	return shaped(k.body(src, run, call.Grant), func(i *Invocation, r *scripting.Result) (json.RawMessage, error) {
		return reply.Contents(i.Address, mimeType, r)
	})
}

// stored is the body of a resource whose content stands in the files.
type stored struct {
	uri     string
	content hclfile.Content
	once    sync.Once
	reply   json.RawMessage
}

// Run returns the content, which is encoded when it is first read.
func (s *stored) Run(context.Context, Invocation) (scripting.Outcome, error) {
	s.once.Do(func() { s.reply = reply.Stored(s.uri, s.content.MIMEType, s.content.Bytes, s.content.Binary) })
	return replied(s.reply), nil
}

// replied is the outcome of a body that has made its reply.
func replied(r json.RawMessage) scripting.Outcome {
	return scripting.Outcome{Result: &scripting.Result{Kind: scripting.Value, JSON: r}}
}

// shape makes a reply of what a body returned.
type shape func(i *Invocation, r *scripting.Result) (json.RawMessage, error)

// shapedBody is a body whose result becomes a reply.
type shapedBody struct {
	Body
	shape shape
}

// shaped returns a body whose results are shaped; nil for none.
func shaped(b Body, s shape) Body {
	if b == nil {
		return nil
	}
	return &shapedBody{b, s}
}

// Run runs the body; a result that no reply can be made of is its failure.
func (b *shapedBody) Run(ctx context.Context, i Invocation) (scripting.Outcome, error) {
	outcome, err := b.Body.Run(ctx, i)
	if err != nil || outcome.Result == nil {
		return outcome, err
	}
	made, err := b.shape(&i, outcome.Result)
	if err != nil {
		return scripting.Outcome{Failure: &scripting.Failure{Kind: scripting.Thrown, Message: err.Error()}}, nil
	}
	return replied(made), nil
}

// folder returns what there is to compile of the files that a folder offers.
func (c *compiler) folder(def *hclfile.Folder) (jobs []job) {
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
		if err != nil {
			c.found.report(diag.List{{
				Code: "unreadable-file", Range: def.RootRange,
				Summary: fmt.Sprintf("the file %q of the folder cannot be read: %v", name, err), Detail: "make it a file that mcpd may read and that not every user may write, or exclude it",
			}})
			continue
		}
		key := sha256.Sum256(append(append(append([]byte("file\x00"), def.Hash[:]...), hash[:]...), file.Name...))
		jobs = append(jobs, job{key, func() *compiledItem { return c.file(def, file.Name, content, hclfile.Hash(hash)) }})
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
func (c *compiler) file(def *hclfile.Folder, name string, content []byte, hash hclfile.Hash) *compiledItem {
	uri := def.URI(name)
	stands := def.Content(name, content)
	item := resourceItem(Resources, def.Name, uri, "", def.Description, hclfile.Call{Labels: def.Labels, Timeout: hclfile.DefaultTimeout})
	item.Icons, item.Where, item.folder = def.Icons, def.NameRange, def
	item.Offer = &Offer{ListedAs: name, MIMEType: stands.MIMEType, Size: int64(len(content)), Annotations: annotationsOf(def.Annotations)}
	item.Body, item.Steady = &stored{uri: uri, content: stands}, true
	k := c.begin(item, def.Meaning)
	k.key.Write([]byte(uri))
	k.key.Write(hash[:])
	return k.done()
}
