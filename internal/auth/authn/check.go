package authn

import (
	"fmt"

	"github.com/mcpd/mcpd/internal/auth/idp"
)

// Check returns why methods could not be applied now, as the [Roster.Apply] of a program
// with extensions/oidc would. It reads the files of keys, and asks no identity provider.
func Check(o Options) error {
	b := &building{roster: NewRoster(RosterOptions{Protocol: unasked{}}), files: map[string]*keyFile{}, issuers: map[string]*issuer{}}
	if _, err := b.build(o); err != nil {
		return fmt.Errorf("check methods of authentication: %w", err)
	}
	return nil
}

// unasked is a protocol that nothing is read with.
type unasked struct{ idp.Protocol }
