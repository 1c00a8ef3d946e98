package policylang

import (
	"context"
	"sync"
	"time"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/identity"
)

// Access is a compiled condition on a principal who does something other than to call an item. It
// is immutable and safe for concurrent use.
type Access struct {
	env  *Env
	body *expression
}

// AccessSource is the source of an [Access].
type AccessSource struct {
	// Argument is the argument that the text is the value of, for messages. Block is the block,
	// and Range its position.
	Argument, Block string
	Text            diag.Text
	Range           diag.Range
	// Other adds the variable other: the principal that the caller acts as.
	Other bool
}

// CompileAccess compiles a condition that reads principal, vars and now, and nothing about a call.
// It is nil if the list has errors.
func (e *Env) CompileAccess(src AccessSource) (*Access, diag.List) {
	s, err := e.accessScope(src.Other)
	if err != nil {
		return nil, diag.List{{Code: codeType, Summary: "the expression cannot be compiled: " + err.Error(), Range: src.Range}}
	}
	c := compiler{scope: s, owner: &subject{src.Block, "", src.Range}}
	body := c.compile(role(src.Argument), src.Text)
	if c.diags.HasErrors() {
		return nil, c.diags
	}
	return &Access{env: e, body: body}, c.diags
}

// accessScope returns the scope of conditions on a principal, with or without another one.
func (e *Env) accessScope(other bool) (*scope, error) {
	if other {
		return e.access[1]()
	}
	return e.access[0]()
}

// newAccessScope extends the library of CEL, so that variables about a call do not exist.
func (e *Env) newAccessScope(library *cel.Env, other bool) func() (*scope, error) {
	return sync.OnceValues(func() (*scope, error) {
		principal := e.roots["principal"]
		s := &scope{env: e, roots: map[string]*shape{"vars": e.roots["vars"], "principal": principal}}
		options := []cel.EnvOption{
			cel.CustomTypeAdapter(&adapter{base: library.CELTypeAdapter()}), cel.CustomTypeProvider(e.own),
			cel.Variable("vars", e.roots["vars"].cel), cel.Variable("now", types.TimestampType), cel.Variable("principal", principal.cel),
		}
		if other {
			s.roots["other"] = principal
			options = append(options, cel.Variable("other", principal.cel))
		}
		var err error
		s.cel, err = library.Extend(options...)
		return s, err
	})
}

// Permits reports whether the condition is true. It is false after an error, which is for
// operators and holds no values. Other is read only if the source has it.
func (a *Access) Permits(ctx context.Context, principal, other identity.Principal, now time.Time) (bool, error) {
	r := a.env.start(ctx, Input{Caller: identity.Caller{Principal: principal}, Now: now})
	defer a.env.stop(r)
	r.other = other
	value, failed := a.body.decide(r)
	if failed != nil {
		return false, failed
	}
	return value == True, nil
}
