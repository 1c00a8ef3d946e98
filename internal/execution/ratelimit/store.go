package ratelimit

import "context"

// Store counts calls. It is safe for concurrent use.
type Store interface {
	// Take makes all charges, which are of different limits, or none. A refusal
	// names, of the limits that are against the call, the one with the longest
	// wait. After an error, of a store that cannot be asked, the call must not be
	// made, and Release is not called. The store may reorder the charges.
	Take(ctx context.Context, charges []Charge) (*Refusal, error)
	// Release says that a call for which Take made the charges has ended. It is
	// called once for each.
	Release(charges []Charge)
	// Keep forgets the counters of all other limits. Calls that are charged to
	// them may still run.
	Keep(limits []*Limit)
}
