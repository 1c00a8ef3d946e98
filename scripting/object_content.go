package scripting

import (
	"encoding/base64"

	"github.com/dop251/goja"
)

// makeContent makes content, whose functions return MCP content blocks:
//
//	content.text(text, extra)                anything but a string becomes JSON
//	content.image(data, mimeType, extra)     data is base64 text or bytes
//	content.audio(data, mimeType, extra)
//	content.resource({ uri, mimeType, text | data }, extra)
//	content.link({ uri, name, title, description, mimeType, size }, extra)
//	content.structured(value, blocks)
//
// extra holds further members of the block, such as annotations.
func (r *run) makeContent() *goja.Object {
	o := r.rt.NewObject()
	r.method(o, "text", func(c goja.FunctionCall) goja.Value {
		block := r.block("text", c.Argument(1))
		_ = block.Set("text", r.blockText(c.Argument(0)))
		return block
	})
	for _, kind := range []string{"image", "audio"} {
		r.method(o, kind, func(c goja.FunctionCall) goja.Value {
			block := r.block(kind, c.Argument(2))
			_ = block.Set("data", r.base64(c.Argument(0)))
			_ = block.Set("mimeType", r.required(c.Argument(1), "content."+kind+"(data, mimeType): mimeType"))
			return block
		})
	}
	r.method(o, "resource", r.resourceBlock)
	r.method(o, "link", r.linkBlock)
	r.method(o, "structured", func(c goja.FunctionCall) goja.Value {
		o := r.rt.NewObject()
		if r.rich == nil {
			r.rich = map[*goja.Object]structured{}
		}
		r.rich[o] = structured{value: c.Argument(0), blocks: r.checkedBlocks(c.Argument(1))}
		return o
	})
	return o
}

// blockText returns the text of a block.
func (r *run) blockText(v goja.Value) goja.Value {
	if _, ok := v.(*goja.Object); !ok {
		return v.ToString()
	}
	out, err := r.json(v)
	if err != nil {
		panic(r.throwable(err))
	}
	return r.rt.ToValue(string(out))
}

// block returns a new block with the members of extra.
func (r *run) block(kind string, extra goja.Value) *goja.Object {
	o := r.rt.NewObject()
	_ = o.Set("type", kind)
	r.copyMembers(o, extra)
	_ = o.Set("type", kind)
	if r.blocks == nil {
		r.blocks = map[*goja.Object]bool{}
	}
	r.blocks[o] = true
	return o
}

func (r *run) copyMembers(to *goja.Object, from goja.Value) {
	o, ok := from.(*goja.Object)
	if !ok {
		return
	}
	for _, key := range o.Keys() {
		r.proceed()
		_ = define(to, key, o.Get(key))
	}
}

// checkedBlocks refuses what is neither a block nor an array of blocks.
func (r *run) checkedBlocks(v goja.Value) goja.Value {
	if isNothing(v) {
		return r.rt.NewArray()
	}
	o, ok := v.(*goja.Object)
	if !ok || !r.blocks[o] && !r.onlyBlocks(o) {
		panic(r.typeError("content.structured(value, blocks): blocks must be made by content.text and its like"))
	}
	return o
}

func (r *run) resourceBlock(c goja.FunctionCall) goja.Value {
	from, ok := c.Argument(0).(*goja.Object)
	if !ok {
		panic(r.typeError("content.resource({ uri, mimeType, text }): an object is needed"))
	}
	inner := r.rt.NewObject()
	_ = inner.Set("uri", r.required(from.Get("uri"), "content.resource({ uri, … }): uri"))
	if v := from.Get("mimeType"); !isNothing(v) {
		_ = inner.Set("mimeType", v.ToString())
	}
	switch text, data := from.Get("text"), from.Get("data"); {
	case !isNothing(text):
		_ = inner.Set("text", text.ToString())
	case !isNothing(data):
		_ = inner.Set("blob", r.base64(data))
	default:
		panic(r.typeError("content.resource({ uri, … }): text or data is needed"))
	}
	block := r.block("resource", c.Argument(1))
	_ = block.Set("resource", inner)
	return block
}

func (r *run) linkBlock(c goja.FunctionCall) goja.Value {
	from, ok := c.Argument(0).(*goja.Object)
	if !ok {
		panic(r.typeError("content.link({ uri, name }): an object is needed"))
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

// required returns a string that must be there.
func (r *run) required(v goja.Value, what string) goja.Value {
	if s, ok := v.(goja.String); ok && s.Length() > 0 {
		return s
	}
	panic(r.typeError(what + " must be a string that is not empty"))
}

// base64 returns binary data as base64 text: text is taken to be base64
// already, and checked; bytes are encoded.
func (r *run) base64(v goja.Value) goja.Value {
	if s, ok := v.(goja.String); ok {
		text := s.String()
		if _, err := base64.StdEncoding.DecodeString(text); err != nil {
			panic(r.typeError("binary data must be base64 text or a Uint8Array"))
		}
		return r.rt.ToValue(text)
	}
	data, ok := r.bytesOf(v)
	if !ok {
		panic(r.typeError("binary data must be base64 text or a Uint8Array"))
	}
	return r.rt.ToValue(base64.StdEncoding.EncodeToString(data))
}
