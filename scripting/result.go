package scripting

import (
	"encoding/json"
	"errors"
	"slices"

	"github.com/dop251/goja"

	"github.com/mcpd/mcpd/internal/js/builtins"
	"github.com/mcpd/mcpd/internal/js/jsvalue"
)

// structuredContent is the result of content.structured: a value with content blocks.
type structuredContent struct {
	value  goja.Value
	blocks goja.Value
}

var errBlocks = errors.New("its blocks change while they are read")

var errBytes = errors.New("it is bytes; return content.image, content.audio or content.resource of them, or Array.from(bytes)")

// result returns the result of the call for the returned value.
func (r *execution) result(value goja.Value) (result *Result, failure *Failure) {
	problem := r.guarded("the result cannot be returned", func() (err error) {
		result, err = r.readResult(value)
		return err
	})
	if problem != nil {
		return nil, problem
	}
	return result, nil
}

// guarded runs f, which may run user code. It returns the failure for an exception or an error;
// The message starts with what.
func (r *execution) guarded(what string, f func() error) *Failure {
	var err error
	var thrown *goja.Exception
	failure := r.catchThrow(func() {
		thrown = r.Runtime.Try(func() { err = f() })
	})
	var unfit *jsvalue.EncodeError
	switch {
	case failure != nil:
		return failure
	case thrown != nil:
		return r.failureAt(thrown.Value(), thrown.Stack())
	case r.failure != nil:
		return r.failure
	case errors.As(err, &unfit) && unfit.Limit != "":
		return limitFailure(unfit.Limit, "the result is too large: "+unfit.Message)
	case errors.Is(err, jsvalue.ErrStopped):
		return ContextFailure(r.ctx)
	case err != nil:
		return &Failure{Kind: Thrown, Message: what + ": " + err.Error()}
	}
	return nil
}

func (r *execution) readResult(value goja.Value) (*Result, error) {
	if rich, ok := r.contentOf(value); ok {
		return r.encodeContent(rich)
	}
	if lifted, ok := r.extractContent(value); ok {
		return r.encodeContent(lifted)
	}
	if _, bytes := r.BytesOf(value); bytes {
		// As JSON it would be an object with a member for each byte.
		return nil, errBytes
	}
	out, err := r.Encode(value, r.Program.Source.BigIntResult)
	if err != nil {
		return nil, err
	}
	switch {
	case out == nil:
		return &Result{Kind: Nothing}, nil
	case out[0] == '"':
		return &Result{Kind: Text, JSON: out}, nil
	}
	return &Result{Kind: Value, JSON: out}, nil
}

func (r *execution) encodeContent(rich structuredContent) (*Result, error) {
	content, err := r.JSON(rich.blocks)
	if err != nil {
		return nil, err
	}
	if content == nil {
		content = []byte("[]")
	}
	if content[0] == '{' {
		content = append(append([]byte{'['}, content...), ']')
	}
	if r.Program.Kind == Code && !AreBlocks(content) {
		return nil, errBlocks
	}
	result := &Result{Kind: Content, Content: content}
	if rich.value != nil {
		result.JSON, err = r.Encode(rich.value, r.Program.Source.BigIntResult)
	}
	return result, err
}

// AreBlocks reports whether JSON is an array of objects with types, like MCP content blocks.
func AreBlocks(content []byte) bool {
	var blocks []struct{ Type string }
	if len(content) == 0 || content[0] != '[' || json.Unmarshal(content, &blocks) != nil {
		return false
	}
	return !slices.ContainsFunc(blocks, func(b struct{ Type string }) bool { return b.Type == "" })
}

// contentOf returns the content of a value: the result of content.structured, one block, or an
// array of blocks.
func (r *execution) contentOf(value goja.Value) (structuredContent, bool) {
	o, ok := value.(*goja.Object)
	if !ok || r.blocks == nil && r.contents == nil {
		return structuredContent{}, false
	}
	if rich, ok := r.contents[o]; ok {
		return rich, true
	}
	if r.isOwnBlock(o) || r.onlyBlocks(o) {
		return structuredContent{blocks: value}, true
	}
	return structuredContent{}, false
}

// onlyBlocks reports whether o is a non-empty array of blocks.
func (r *execution) onlyBlocks(o *goja.Object) bool {
	if jsvalue.KindOf(o) != jsvalue.Array {
		return false
	}
	length := jsvalue.LengthOf(o)
	if length == 0 || length > int64(r.journal.limits.Output) {
		return false
	}
	for i := range length {
		r.Proceed()
		block, ok := o.Get(builtins.Index(i)).(*goja.Object)
		if !ok || !r.isOwnBlock(block) {
			return false
		}
	}
	return true
}

// isOwnBlock reports whether an object is a block of the script, or a block from a tool that the
// code has not invalidated.
func (r *execution) isOwnBlock(o *goja.Object) bool {
	return r.blocks[o] && (r.Program.Kind != Code || isBlock(o))
}
