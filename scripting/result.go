package scripting

import (
	"encoding/json"
	"errors"
	"slices"

	"github.com/dop251/goja"
)

var errBlocks = errors.New("its blocks change while they are read")

// areTyped reports whether each of an array of blocks names its type.
func areTyped(content []byte) bool {
	var blocks []struct{ Type string }
	if json.Unmarshal(content, &blocks) != nil {
		return false
	}
	return !slices.ContainsFunc(blocks, func(b struct{ Type string }) bool { return b.Type == "" })
}

// structured is what content.structured returned: a value beside its blocks.
type structured struct {
	value  goja.Value
	blocks goja.Value
}

var errBytes = errors.New("it is bytes; return content.image, content.audio or content.resource of them, or Array.from(bytes)")

// result makes the call's result of what the body returned.
func (r *run) result(value goja.Value) (result *Result, failure *Failure) {
	problem := r.guarded("the result cannot be returned", func() (err error) {
		result, err = r.read(value)
		return err
	})
	if problem != nil {
		return nil, problem
	}
	return result, nil
}

// guarded runs f, which may run user code, and makes a failure of what it
// throws and of what it returns; what says what cannot be done then.
func (r *run) guarded(what string, f func() error) *Failure {
	var err error
	var thrown *goja.Exception
	failure := r.safely(func() {
		thrown = r.rt.Try(func() { err = f() })
	})
	var unfit *encodeError
	switch {
	case failure != nil:
		return failure
	case thrown != nil:
		return r.thrownAt(thrown.Value(), thrown.Stack())
	case r.failure != nil:
		return r.failure
	case errors.As(err, &unfit) && unfit.limit != "":
		return limitFailure(unfit.limit, "the result is too large: "+unfit.message)
	case errors.Is(err, errStopped):
		return Over(r.ctx)
	case err != nil:
		return &Failure{Kind: Thrown, Message: what + ": " + err.Error()}
	}
	return nil
}

func (r *run) read(value goja.Value) (*Result, error) {
	if rich, ok := r.richOf(value); ok {
		return r.readRich(rich)
	}
	if lifted, ok := r.lift(value); ok {
		return r.readRich(lifted)
	}
	if _, bytes := r.bytesOf(value); bytes {
		// As JSON it would be an object with a member for each byte.
		return nil, errBytes
	}
	out, err := r.encoded(value, r.program.source.BigIntResult)
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

// json returns the value as JSON, nil for undefined.
func (r *run) json(value goja.Value) ([]byte, error) { return r.encoded(value, false) }

// encoded is [run.json] where a BigInt may be an integer.
func (r *run) encoded(value goja.Value, bigints bool) ([]byte, error) {
	e := newEncoder(r.limits.Output, r.limits.Depth, r.stopped)
	e.awaited, e.bigints = true, bigints
	wrote, err := e.encode(value)
	if err != nil || !wrote {
		return nil, err
	}
	return e.out, nil
}

// richOf returns the content that the value is: what content.structured
// returned, one block, or an array of blocks.
func (r *run) richOf(value goja.Value) (structured, bool) {
	o, ok := value.(*goja.Object)
	if !ok || r.blocks == nil && r.rich == nil {
		return structured{}, false
	}
	if rich, ok := r.rich[o]; ok {
		return rich, true
	}
	if r.isOwnBlock(o) || r.onlyBlocks(o) {
		return structured{blocks: value}, true
	}
	return structured{}, false
}

// onlyBlocks reports whether o is an array of blocks, and not empty.
func (r *run) onlyBlocks(o *goja.Object) bool {
	if kindOf(o) != kindArray {
		return false
	}
	length := lengthOf(o)
	if length == 0 || length > int64(r.limits.Output) {
		return false
	}
	for i := range length {
		r.proceed()
		block, ok := o.Get(index(i)).(*goja.Object)
		if !ok || !r.isOwnBlock(block) {
			return false
		}
	}
	return true
}

// isOwnBlock reports whether an object is a block that the body made, or that a tool
// has answered and code has left one.
func (r *run) isOwnBlock(o *goja.Object) bool {
	return r.blocks[o] && (r.program.kind != Code || isBlock(o))
}

func (r *run) readRich(rich structured) (*Result, error) {
	content, err := r.json(rich.blocks)
	if err != nil {
		return nil, err
	}
	if content == nil {
		content = []byte("[]")
	}
	if content[0] == '{' {
		content = append(append([]byte{'['}, content...), ']')
	}
	if r.program.kind == Code && !areTyped(content) {
		return nil, errBlocks
	}
	result := &Result{Kind: Content, Content: content}
	if rich.value != nil {
		result.JSON, err = r.encoded(rich.value, r.program.source.BigIntResult)
	}
	return result, err
}
