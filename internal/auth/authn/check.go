package authn

import "fmt"

// Check returns why methods could not be applied now, as [Roster.Apply] would. It
// reads the files of keys, and asks no identity provider.
func Check(o Options) error {
	b := &building{roster: NewRoster(RosterOptions{}), files: map[string]*keyFile{}, issuers: map[string]*issuer{}}
	if _, err := b.build(o); err != nil {
		return fmt.Errorf("check methods of authentication: %w", err)
	}
	return nil
}
