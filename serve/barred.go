package serve

import (
	"fmt"
	"slices"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/engine"
)

// judge adds to a status what is wrong with how callers are let in, at the auth blocks of
// the snapshot that serves.
func (a *access) judge(status engine.Status) engine.Status {
	now := a.engine.Snapshot()
	if now == nil || len(now.Auths()) == 0 {
		return status
	}
	barred := a.barred(now.Auths())
	if err := a.failure(now); err != nil && len(barred) == 0 {
		barred = diag.List{notApplied(now.Auths()[0], err.Error())}
	}
	if len(barred) == 0 {
		return status
	}
	status.Synchronized = false
	for _, b := range barred {
		told := func(p diag.Diagnostic) bool { return p.Code == b.Code && p.Range == b.Range }
		if !slices.ContainsFunc(status.Problems, told) {
			status.Problems = append(status.Problems, b)
		}
	}
	status.Problems = status.Problems.Sort()
	return status
}

// barred returns the blocks whose files of keys cannot be read as they are now.
func (a *access) barred(blocks []engine.Auth) (found diag.List) {
	wrong := a.roster.Wrong()
	for _, b := range blocks {
		if b.Keys != nil && wrong[b.Keys.File] != nil {
			found = append(found, notApplied(b, wrong[b.Keys.File].Error()))
		}
	}
	return found
}

// failure returns why the blocks of a snapshot have not been applied, if they were tried.
func (a *access) failure(of *engine.Snapshot) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.failed.of != of {
		return nil
	}
	return a.failed.err
}

// notApplied says of a block what a load would.
func notApplied(b engine.Auth, why string) diag.Diagnostic {
	return diag.Diagnostic{
		Code: "bad-auth", Range: b.Range, Summary: fmt.Sprintf("auth %q %q cannot be applied: %s", b.Kind, b.Name, why),
		Detail: "correct the block or what it names",
	}
}
