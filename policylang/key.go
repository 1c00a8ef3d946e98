package policylang

import (
	"context"
	"fmt"

	"github.com/google/cel-go/common/types"

	"github.com/mcpd/mcpd/diag"
)

// KeySource is the key of a limit as it was written: what tells the calls apart
// that the limit counts apart.
type KeySource struct {
	// Limit is the name of the limit, for messages, and Range where it stands.
	Limit string
	Text  diag.Text
	Range diag.Range
}

// MayReadArgs reports whether the key may read the arguments. One that does not
// is compiled alike for all tools.
func (s KeySource) MayReadArgs() bool { return mayReadArgs(s.Text) }

// Key is a compiled key. It is immutable and safe for concurrent use.
type Key struct {
	env  *Env
	name string
	body *expression
	// ofCaller says that the key reads principal.id.
	ofCaller bool
}

// OfCaller reports whether the key tells callers apart by principal.id, which callers of
// another kind or issuer may have too.
func (k *Key) OfCaller() bool { return k.ofCaller }

// CompileKey compiles a key for one tool: against the schema of its arguments.
// For a nil tool, which is for limits that cover none, these are not known. The
// key is nil when the list has errors.
func (e *Env) CompileKey(src KeySource, t *Tool) (*Key, diag.List) {
	if !src.MayReadArgs() {
		if k, diags := e.compileKey(src, nil, e.plain); k != nil {
			return k, diags
		}
		// What is wrong is told better by one who knows the arguments.
	}
	var tool Tool
	if t != nil {
		tool = *t
	}
	s, err := e.scopeFor(schemas{args: string(tool.Schema)})
	if err != nil {
		return nil, diag.List{schemaProblem(tool, err)}
	}
	return e.compileKey(src, t, s)
}

func (e *Env) compileKey(src KeySource, t *Tool, s *scope) (*Key, diag.List) {
	c := compiler{scope: s, owner: &owner{"limit", src.Limit, src.Range}, tool: t}
	body := c.compile(roleKey, src.Text)
	if c.diags.HasErrors() {
		return nil, c.diags
	}
	_, ofCaller := Reads(src.Text, "principal", "id")
	return &Key{env: e, name: src.Limit, body: body, ofCaller: ofCaller}, c.diags
}

// Eval returns the key of a call. Whatever keeps it from being evaluated is an
// error, which is for operators and holds no values.
func (k *Key) Eval(ctx context.Context, in Input) (string, error) {
	r := k.env.start(ctx, in)
	defer k.env.stop(r)
	value, err := k.body.eval(r)
	if err != nil {
		return "", k.blame(err)
	}
	text, ok := value.(types.String)
	if !ok {
		return "", k.blame(&failure{place: k.body.whole, problem: fmt.Sprintf("key is not a string but %s", typeWords(value.Type().TypeName()))})
	}
	return string(text), nil
}

func (k *Key) blame(err *failure) error { return fmt.Errorf("limit %q: %w", k.name, err) }
