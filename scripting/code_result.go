package scripting

import (
	"github.com/dop251/goja"
)

// markBlocks takes what a tool has answered for content where it is an array of
// content blocks of MCP, so that code can return them as what they are.
func (r *run) markBlocks(answer goja.Value) {
	list, ok := answer.(*goja.Object)
	if !ok || kindOf(list) != kindArray {
		return
	}
	blocks := make([]*goja.Object, 0, min(lengthOf(list), 16))
	for i := range lengthOf(list) {
		block, ok := list.Get(index(i)).(*goja.Object)
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

// isBlock reports whether an object has the members that MCP asks of a block.
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

// lift makes content of a value of code that has blocks in it, one level deep: the
// blocks, and the value with {"type", "block"} in the place of each, of which block
// is its place among them. Text stays where it is.
func (r *run) lift(value goja.Value) (structured, bool) {
	o, ok := value.(*goja.Object)
	if !ok || r.program.kind != Code || len(r.blocks) == 0 {
		return structured{}, false
	}
	l := lifting{r: r, blocks: r.rt.NewArray()}
	var copied *goja.Object
	switch kindOf(o) {
	case kindArray:
		copied = l.array(o, l.member)
	case kindPlain:
		if promiseOf(o) != nil {
			return structured{}, false
		}
		copied = r.rt.NewObject()
		for _, key := range o.Keys() {
			r.proceed()
			_ = copied.DefineDataProperty(key, l.member(o.Get(key)), goja.FLAG_TRUE, goja.FLAG_TRUE, goja.FLAG_TRUE)
		}
	}
	if l.count == 0 {
		return structured{}, false
	}
	return structured{value: copied, blocks: l.blocks}, true
}

// lifting is the blocks that were found so far.
type lifting struct {
	r      *run
	blocks *goja.Object
	count  int64
}

// member returns what stands for a member: itself, unless it is a block or an array
// of them.
func (l *lifting) member(v goja.Value) goja.Value {
	if o, ok := v.(*goja.Object); ok && !l.r.isOwnBlock(o) && l.r.onlyBlocks(o) {
		return l.array(o, l.element)
	}
	return l.element(v)
}

// element returns what stands for an element of such an array: itself, unless it is a block.
func (l *lifting) element(v goja.Value) goja.Value {
	if o, ok := v.(*goja.Object); ok && l.r.isOwnBlock(o) {
		return l.block(o)
	}
	if v == nil {
		return goja.Undefined()
	}
	return v
}

// array returns an array of what stands for the elements of another. The elements
// are bounded by the size of a result.
func (l *lifting) array(o *goja.Object, of func(goja.Value) goja.Value) *goja.Object {
	copied := l.r.rt.NewArray()
	length := lengthOf(o)
	if length > int64(l.r.limits.Output) {
		return o
	}
	for i := range length {
		l.r.proceed()
		_ = copied.DefineDataProperty(index(i), of(o.Get(index(i))), goja.FLAG_TRUE, goja.FLAG_TRUE, goja.FLAG_TRUE)
	}
	return copied
}

// block lifts a block, unless it is text.
func (l *lifting) block(o *goja.Object) goja.Value {
	kind := o.Get("type")
	if s, ok := kind.(goja.String); !ok || s.String() == "text" {
		return o
	}
	_ = l.blocks.DefineDataProperty(index(l.count), o, goja.FLAG_TRUE, goja.FLAG_TRUE, goja.FLAG_TRUE)
	reference := l.r.rt.NewObject()
	_ = reference.Set("type", kind)
	_ = reference.Set("block", l.count)
	l.count++
	return reference
}
