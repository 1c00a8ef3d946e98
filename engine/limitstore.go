package engine

import "github.com/mcpd/mcpd/internal/execution/limitstore"

// What the limit blocks of files are counted by where a program counts them itself.
type (
	// SharedLimits says how the limit blocks of files are counted elsewhere than in the
	// memory of one server.
	SharedLimits = limitstore.Shared
	// LimitStore counts calls for servers.
	LimitStore = limitstore.Store
	// LimitCharge is one call under one key of a limit.
	LimitCharge = limitstore.Charge
	// LimitVerdict says whether a call may be made.
	LimitVerdict = limitstore.Verdict
)
