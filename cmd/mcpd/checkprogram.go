package main

import (
	"errors"
	"fmt"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/engine"
)

// missingPrograms warns of upstreams whose programs this machine does not have. It may not
// be the one that is to run them.
func missingPrograms(e env, s *engine.Snapshot) (warnings diag.List) {
	upstreams := s.Inside().Upstreams()
	for i := range upstreams {
		u := &upstreams[i]
		if len(u.Command) == 0 {
			continue
		}
		if err := e.program(u.Command[0]); err != nil {
			for why := err; why != nil; why = errors.Unwrap(why) {
				err = why // the last of them names no path twice
			}
			warnings = append(warnings, diag.Diagnostic{
				Severity: diag.Warning, Code: "missing-program", Range: u.PlaceRange,
				Summary: fmt.Sprintf("this machine has no program %q: %v", u.Command[0], err),
				Detail:  fmt.Sprintf("install it, or correct its path; without it nothing of the upstream %q is served", u.Name),
			})
		}
	}
	return warnings
}
