package scripting

import (
	"encoding/base64"

	"github.com/dop251/goja"

	"github.com/mcpd/mcpd/internal/js/builtins"
	"github.com/mcpd/mcpd/internal/js/jsvalue"
)

// makeContent returns content. Its functions return MCP content blocks:
//
//	content.text(text, extra)                anything but a string becomes JSON
//	content.image(data, mimeType, extra)     data is base64 text or bytes
//	content.audio(data, mimeType, extra)
//	content.resource({ uri, mimeType, text | data }, extra)
//	content.link({ uri, name, title, description, mimeType, size }, extra)
//	content.structured(value, blocks)
//
// extra has more members for the block, such as annotations.
func (r *execution) makeContent() *goja.Object {
	o := r.Runtime.NewObject()
	r.Method(o, "text", func(c goja.FunctionCall) goja.Value {
		block := r.block("text", c.Argument(1))
		_ = block.Set("text", r.blockText(c.Argument(0)))
		return block
	})
	for _, kind := range []string{"image", "audio"} {
		r.Method(o, kind, func(c goja.FunctionCall) goja.Value {
			block := r.block(kind, c.Argument(2))
			_ = block.Set("data", r.base64(c.Argument(0)))
			_ = block.Set("mimeType", r.required(c.Argument(1), "content."+kind+"(data, mimeType): mimeType"))
			return block
		})
	}
	r.Method(o, "resource", r.resourceBlock)
	r.Method(o, "link", r.linkBlock)
	r.Method(o, "structured", func(c goja.FunctionCall) goja.Value {
		o := r.Runtime.NewObject()
		if r.contents == nil {
			r.contents = map[*goja.Object]structuredContent{}
		}
		r.contents[o] = structuredContent{value: c.Argument(0), blocks: r.requireBlocks(c.Argument(1))}
		return o
	})
	return o
}

func (r *execution) blockText(v goja.Value) goja.Value {
	if _, ok := v.(*goja.Object); !ok {
		return v.ToString()
	}
	out, err := r.JSON(v)
	if err != nil {
		panic(r.Throwable(err))
	}
	return r.Runtime.ToValue(string(out))
}

// block returns a new block with the members of extra.
func (r *execution) block(kind string, extra goja.Value) *goja.Object {
	o := r.Runtime.NewObject()
	_ = o.Set("type", kind)
	r.copyMembers(o, extra)
	_ = o.Set("type", kind)
	if r.blocks == nil {
		r.blocks = map[*goja.Object]bool{}
	}
	r.blocks[o] = true
	return o
}

func (r *execution) copyMembers(to *goja.Object, from goja.Value) {
	o, ok := from.(*goja.Object)
	if !ok {
		return
	}
	for _, key := range o.Keys() {
		r.Proceed()
		_ = jsvalue.Define(to, key, o.Get(key))
	}
}

// requireBlocks throws unless v is a block or an array of blocks.
func (r *execution) requireBlocks(v goja.Value) goja.Value {
	if builtins.IsNothing(v) {
		return r.Runtime.NewArray()
	}
	o, ok := v.(*goja.Object)
	if !ok || !r.blocks[o] && !r.onlyBlocks(o) {
		panic(r.TypeError("content.structured(value, blocks): blocks must be made by content.text and similar functions"))
	}
	return o
}

func (r *execution) resourceBlock(c goja.FunctionCall) goja.Value {
	from, ok := c.Argument(0).(*goja.Object)
	if !ok {
		panic(r.TypeError("content.resource({ uri, mimeType, text }): an object is needed"))
	}
	inner := r.Runtime.NewObject()
	_ = inner.Set("uri", r.required(from.Get("uri"), "content.resource({ uri, … }): uri"))
	if v := from.Get("mimeType"); !builtins.IsNothing(v) {
		_ = inner.Set("mimeType", v.ToString())
	}
	switch text, data := from.Get("text"), from.Get("data"); {
	case !builtins.IsNothing(text):
		_ = inner.Set("text", text.ToString())
	case !builtins.IsNothing(data):
		_ = inner.Set("blob", r.base64(data))
	default:
		panic(r.TypeError("content.resource({ uri, … }): text or data is needed"))
	}
	block := r.block("resource", c.Argument(1))
	_ = block.Set("resource", inner)
	return block
}

func (r *execution) linkBlock(c goja.FunctionCall) goja.Value {
	from, ok := c.Argument(0).(*goja.Object)
	if !ok {
		panic(r.TypeError("content.link({ uri, name }): an object is needed"))
	}
	uri := r.required(from.Get("uri"), "content.link({ uri, name }): uri")
	name := r.required(from.Get("name"), "content.link({ uri, name }): name")
	block := r.block("resource_link", c.Argument(1))
	r.copyMembers(block, from)
	_ = block.Set("type", "resource_link")
	_ = block.Set("uri", uri)
	_ = block.Set("name", name)
	return block
}

func (r *execution) required(v goja.Value, what string) goja.Value {
	if s, ok := v.(goja.String); ok && s.Length() > 0 {
		return s
	}
	panic(r.TypeError(what + " must be a string that is not empty"))
}

// base64 returns binary data as base64 text. Text must be base64 already; bytes are encoded.
func (r *execution) base64(v goja.Value) goja.Value {
	if s, ok := v.(goja.String); ok {
		text := s.String()
		if _, err := base64.StdEncoding.DecodeString(text); err != nil {
			panic(r.TypeError("binary data must be base64 text or a Uint8Array"))
		}
		return r.Runtime.ToValue(text)
	}
	data, ok := r.BytesOf(v)
	if !ok {
		panic(r.TypeError("binary data must be base64 text or a Uint8Array"))
	}
	return r.Runtime.ToValue(base64.StdEncoding.EncodeToString(data))
}

// markContentBlocks marks the elements of a tool result as content if it is an array of MCP content
// blocks, so that the code can return them as content.
func (r *execution) markContentBlocks(answer goja.Value) {
	list, ok := answer.(*goja.Object)
	if !ok || jsvalue.KindOf(list) != jsvalue.Array {
		return
	}
	blocks := make([]*goja.Object, 0, min(jsvalue.LengthOf(list), 16))
	for i := range jsvalue.LengthOf(list) {
		block, ok := list.Get(builtins.Index(i)).(*goja.Object)
		if !ok || !isBlock(block) {
			return
		}
		blocks = append(blocks, block)
	}
	if r.blocks == nil {
		r.blocks = map[*goja.Object]bool{}
	}
	for _, block := range blocks {
		r.blocks[block] = true
	}
}

// isBlock reports whether an object has the required members of an MCP content block.
func isBlock(o *goja.Object) bool {
	has := func(o *goja.Object, names ...string) bool {
		for _, name := range names {
			if _, ok := o.Get(name).(goja.String); !ok {
				return false
			}
		}
		return true
	}
	switch kind, _ := o.Get("type").(goja.String); {
	case kind == nil:
		return false
	case kind.String() == "text":
		return has(o, "text")
	case kind.String() == "image", kind.String() == "audio":
		return has(o, "data", "mimeType")
	case kind.String() == "resource_link":
		return has(o, "uri", "name")
	case kind.String() == "resource":
		inner, ok := o.Get("resource").(*goja.Object)
		return ok && has(inner, "uri") && (has(inner, "text") || has(inner, "blob"))
	}
	return false
}

// extractContent extracts the content blocks of a value of agent code, one level deep. It returns
// the blocks, and the value with {"type", "block"} instead of each, where block is the index of the
// block. Text blocks stay in the value.
func (r *execution) extractContent(value goja.Value) (structuredContent, bool) {
	o, ok := value.(*goja.Object)
	if !ok || r.Program.Kind != Code || len(r.blocks) == 0 {
		return structuredContent{}, false
	}
	l := contentExtractor{r: r, blocks: r.Runtime.NewArray()}
	var copied *goja.Object
	switch jsvalue.KindOf(o) {
	case jsvalue.Array:
		copied = l.array(o, l.member)
	case jsvalue.Plain:
		if jsvalue.PromiseOf(o) != nil {
			return structuredContent{}, false
		}
		copied = r.Runtime.NewObject()
		for _, key := range o.Keys() {
			r.Proceed()
			_ = copied.DefineDataProperty(key, l.member(o.Get(key)), goja.FLAG_TRUE, goja.FLAG_TRUE, goja.FLAG_TRUE)
		}
	}
	if l.count == 0 {
		return structuredContent{}, false
	}
	return structuredContent{value: copied, blocks: l.blocks}, true
}

type contentExtractor struct {
	r      *execution
	blocks *goja.Object
	count  int64
}

// member returns the replacement of a member: the member itself, unless it is a block or an array
// of blocks.
func (l *contentExtractor) member(v goja.Value) goja.Value {
	if o, ok := v.(*goja.Object); ok && !l.r.isOwnBlock(o) && l.r.onlyBlocks(o) {
		return l.array(o, l.element)
	}
	return l.element(v)
}

// element returns the replacement of an array element: the element itself, unless it is a block.
func (l *contentExtractor) element(v goja.Value) goja.Value {
	if o, ok := v.(*goja.Object); ok && l.r.isOwnBlock(o) {
		return l.block(o)
	}
	if v == nil {
		return goja.Undefined()
	}
	return v
}

// array returns a copy of an array with replaced elements. The size of a result limits the length.
func (l *contentExtractor) array(o *goja.Object, of func(goja.Value) goja.Value) *goja.Object {
	copied := l.r.Runtime.NewArray()
	length := jsvalue.LengthOf(o)
	if length > int64(l.r.journal.limits.Output) {
		return o
	}
	for i := range length {
		l.r.Proceed()
		_ = copied.DefineDataProperty(builtins.Index(i), of(o.Get(builtins.Index(i))), goja.FLAG_TRUE, goja.FLAG_TRUE, goja.FLAG_TRUE)
	}
	return copied
}

// block extracts a block, unless it is text.
func (l *contentExtractor) block(o *goja.Object) goja.Value {
	kind := o.Get("type")
	if s, ok := kind.(goja.String); !ok || s.String() == "text" {
		return o
	}
	_ = l.blocks.DefineDataProperty(builtins.Index(l.count), o, goja.FLAG_TRUE, goja.FLAG_TRUE, goja.FLAG_TRUE)
	reference := l.r.Runtime.NewObject()
	_ = reference.Set("type", kind)
	_ = reference.Set("block", l.count)
	l.count++
	return reference
}
