package catalog

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"sync"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/execution/reply"
	"github.com/mcpd/mcpd/internal/language/definition"
	"github.com/mcpd/mcpd/internal/language/grant"
	"github.com/mcpd/mcpd/scripting"
)

// emptyArgsSchema is the argument schema of a resource, for policies.
const emptyArgsSchema = `{"type":"object","properties":{},"additionalProperties":false}`

// resourceItem returns the common parts of resources, templates and prompts.
func resourceItem(kind Kind, name, address, title, description string, call definition.Call) *Item {
	yes, no := true, false
	item := &Item{
		Kind: kind, Name: name, Address: address, Offer: &Offer{ListedAs: name, Size: -1},
		About:     About{Title: title, Labels: call.Labels, Idempotent: true, ReadOnly: &yes, Destructive: &no},
		Schemas:   Schemas{PolicySchema: json.RawMessage(emptyArgsSchema)},
		Allowance: Allowance{Timeout: call.Timeout, AskTimeout: call.AskTimeout},
	}
	if description != "" {
		item.Description = &description
	}
	return item
}

func (c *compiler) resource(def *definition.Resource) *compiledItem {
	item := resourceItem(Resources, def.Name, def.URI, def.Title, def.Description, def.Call)
	item.Icons, item.Where = def.Icons, def.NameRange
	item.Offer.MIMEType, item.Offer.Annotations = def.MIMEType, annotationsOf(def.Annotations)
	if def.Size != nil {
		item.Offer.Size = *def.Size
	}
	c.state.authors.applyTo(item, def.Bounds)
	k := c.newItem(item, def.Semantic)
	switch {
	case def.Content != nil:
		item.Handler, item.Static = &staticResource{uri: def.URI, content: *def.Content}, true
	case def.Run != nil:
		src := scripting.Source{Name: def.Name, Kind: scripting.Resource, MustReturn: true, Inputs: []string{}}
		item.Handler = k.resourceHandler(src, *def.Run, def.Call, def.MIMEType)
	}
	return k.finish(def.Grant, def.GrantRanges)
}

func (c *itemCompiler) resourceHandler(src scripting.Source, run definition.Code, call definition.Call, mimeType string) Handler {
	return withReply(c.handler(src, run, call.Grant), func(i *Invocation, r *scripting.Result) (json.RawMessage, error) {
		return reply.Contents(i.Address, mimeType, r)
	})
}

// staticResource is the handler of a resource with content in the files.
type staticResource struct {
	uri     string
	content definition.Content
	once    sync.Once
	reply   json.RawMessage
}

// Run returns the content, which is encoded at the first read.
func (s *staticResource) Run(context.Context, Invocation) (scripting.Outcome, error) {
	s.once.Do(func() { s.reply = reply.StaticContents(s.uri, s.content.MIMEType, s.content.Bytes, s.content.Binary) })
	return replyOutcome(s.reply), nil
}

// replyOutcome returns the outcome with a reply.
func replyOutcome(r json.RawMessage) scripting.Outcome {
	return scripting.Outcome{Result: &scripting.Result{Kind: scripting.Value, JSON: r}}
}

// replyFunc converts the result of a script to a reply.
type replyFunc func(i *Invocation, r *scripting.Result) (json.RawMessage, error)

// replyHandler is a handler with a result that is converted to a reply.
type replyHandler struct {
	Handler
	reply replyFunc
}

// withReply returns a handler that converts its results; nil if b is nil.
func withReply(b Handler, s replyFunc) Handler {
	if b == nil {
		return nil
	}
	return &replyHandler{b, s}
}

// Run runs the handler. A result that cannot be converted is a failure.
func (h *replyHandler) Run(ctx context.Context, i Invocation) (scripting.Outcome, error) {
	outcome, err := h.Handler.Run(ctx, i)
	if err != nil || outcome.Result == nil {
		return outcome, err
	}
	encoded, err := h.reply(&i, outcome.Result)
	if err != nil {
		return scripting.Outcome{Failure: &scripting.Failure{Kind: scripting.Thrown, Message: err.Error()}}, nil
	}
	return replyOutcome(encoded), nil
}

func (c *compiler) template(def *definition.Template) *compiledItem {
	item := resourceItem(Templates, def.Name, "", def.Title, def.Description, def.Call)
	item.Icons, item.Where = def.Icons, def.NameRange
	item.Offer.MIMEType, item.Offer.Annotations = def.MIMEType, annotationsOf(def.Annotations)
	c.state.authors.applyTo(item, def.Bounds)
	k := c.newItem(item, def.Semantic)
	if def.URITemplate == nil { // the decoder has reported it
		item.PolicySchema = json.RawMessage(`{"type":"object"}`)
		return k.finish(def.Grant, def.GrantRanges)
	}
	item.Address, item.Offer.Template = def.URITemplate.String(), def.URITemplate
	item.InputNames = def.URITemplate.Names()
	arguments, required := make([]definition.Argument, len(def.Params)), def.URITemplate.Required()
	for i, p := range def.Params {
		arguments[i] = definition.Argument{
			Name: p.Name, Description: p.Description, Required: slices.Contains(required, p.Name), Complete: p.Complete,
		}
	}
	k.arguments(arguments, def.Call)
	for i, p := range def.Params {
		if p.Pattern != "" {
			// The decoder has compiled the pattern before.
			if pattern, err := regexp.Compile(p.Pattern); err == nil {
				item.Offer.Arguments[i].matches = pattern.MatchString
			}
		}
	}
	item.PolicySchema = item.Offer.Schema()
	if def.Run == nil {
		item.Handler = staticTemplate{text: def.Text, mimeType: def.MIMEType}
		return k.finish(def.Grant, def.GrantRanges)
	}
	src := scripting.Source{Name: def.Name, Kind: scripting.Resource, MustReturn: true, Inputs: item.InputNames}
	item.Handler = k.resourceHandler(src, *def.Run, def.Call, def.MIMEType)
	return k.finish(def.Grant, def.GrantRanges)
}

// arguments adds the arguments of a prompt, or the variables of a template, with their completions.
func (c *itemCompiler) arguments(list []definition.Argument, call definition.Call) {
	names := make([]string, len(list))
	for i := range list {
		names[i] = list[i].Name
	}
	for _, a := range list {
		c.item.Offer.Arguments = append(c.item.Offer.Arguments, Argument{
			Name: a.Name, Title: a.Title, Description: a.Description, Required: a.Required,
			completion: c.completion(a.Complete, names, call),
		})
	}
}

// completion returns the handler that completes a value, or nil. It cannot request input, as the
// user is typing.
func (c *itemCompiler) completion(def *definition.Complete, names []string, call definition.Call) Handler {
	switch {
	case def == nil:
		return nil
	case def.Run == nil:
		return staticCompletion(def.Values)
	}
	granted := call.Grant
	granted.Ask = nil
	src := scripting.Source{Name: c.item.Name, Kind: scripting.Complete, Inputs: names}
	return withReply(c.handler(src, *def.Run, granted), func(_ *Invocation, r *scripting.Result) (json.RawMessage, error) {
		return reply.Completion(r)
	})
}

// staticCompletion is a completion with values in the file.
type staticCompletion []string

func (s staticCompletion) Run(_ context.Context, i Invocation) (scripting.Outcome, error) {
	var input struct{ Value string }
	if err := json.Unmarshal(i.Input, &input); err != nil {
		return scripting.Outcome{}, err
	}
	return replyOutcome(reply.CompletionByPrefix(s, input.Value)), nil
}

// staticTemplate is the handler of a template with text in the file.
type staticTemplate struct {
	text     definition.TextTemplate
	mimeType string
}

func (t staticTemplate) Run(_ context.Context, i Invocation) (scripting.Outcome, error) {
	values := stringValues(i.Args)
	if size := t.text.Len(values); size > definition.MaxRendered {
		return tooLong(size), nil
	}
	return replyOutcome(reply.StaticContents(i.Address, cmp.Or(t.mimeType, "text/plain"), []byte(t.text.Render(values)), false)), nil
}

// tooLong returns the outcome of a reply that exceeds the size limit.
func tooLong(size int) scripting.Outcome {
	message := fmt.Sprintf("with these values the text has %d bytes, more than %d", size, definition.MaxRendered)
	return scripting.Outcome{Failure: &scripting.Failure{Kind: scripting.Limit, Limit: "output", Message: message}}
}

// stringValues returns the arguments, which are strings.
func stringValues(args map[string]any) map[string]string {
	values := make(map[string]string, len(args))
	for name, value := range args {
		values[name], _ = value.(string)
	}
	return values
}

func (c *compiler) folder(def *definition.Folder) (jobs []compileJob) {
	if def.Root == "" {
		return nil // the decoder has reported it
	}
	files, err := c.tree.List(def.Root)
	if err != nil {
		c.state.report(diag.List{{
			Code: "unreadable-folder", Range: def.RootRange,
			Summary: fmt.Sprintf("the folder %q cannot be read: %v", def.Root, err), Detail: "fix the path, or create the folder",
		}})
		return nil
	}
	offered := 0
	for _, file := range files {
		if file.Size > def.MaxFile || !def.Includes(file.Name) {
			continue
		}
		offered++
		name := path.Join(def.Root, file.Name)
		content, hash, err := c.tree.Open(name)
		switch {
		case errors.Is(err, fs.ErrNotExist) || int64(len(content)) > def.MaxFile:
			continue // removed, or grown, since the folder was listed
		case err != nil:
			c.state.report(diag.List{{
				Code: "unreadable-file", Range: def.RootRange,
				Summary: fmt.Sprintf("the file %q of the folder cannot be read: %v", name, err), Detail: "make it a file that mcpd may read and that not every user may write, or exclude it",
			}})
			continue
		}
		key := sha256.Sum256(append(append(append([]byte("file\x00"), def.Hash[:]...), hash[:]...), file.Name...))
		jobs = append(jobs, compileJob{key, folderFile{def, file.Name, content, definition.Hash(hash)}})
	}
	if offered == 0 && len(files) > 0 {
		c.state.report(diag.List{{
			Severity: diag.Warning, Code: "pattern-matches-nothing", Range: def.RootRange,
			Summary: fmt.Sprintf("no file of the folder %q is a resource", def.Root),
			Detail:  "check glob, exclude and max_file; ** matches any folders, as in \"**/*.md\"",
		}})
	}
	return jobs
}

// folderFile is a file of a folder block.
type folderFile struct {
	folder  *definition.Folder
	name    string
	content []byte
	hash    definition.Hash
}

func (c *compiler) file(def *definition.Folder, name string, content []byte, hash definition.Hash) *compiledItem {
	uri := def.URI(name)
	stands := def.Content(name, content)
	item := resourceItem(Resources, def.Name, uri, "", def.Description, definition.Call{Labels: def.Labels, Bounds: definition.Bounds{Timeout: definition.DefaultTimeout}})
	item.Icons, item.Where, item.folder = def.Icons, def.NameRange, def
	item.Offer = &Offer{ListedAs: name, MIMEType: stands.MIMEType, Size: int64(len(content)), Annotations: annotationsOf(def.Annotations)}
	item.Handler, item.Static = &staticResource{uri: uri, content: stands}, true
	k := c.newItem(item, def.Semantic)
	k.key.Write([]byte(uri))
	k.key.Write(hash[:])
	return k.finish(grant.Set{}, nil)
}
