package suspend

import (
	"errors"

	"github.com/mcpd/mcpd/internal/state"
)

// Refusal says why nothing goes on from a state, in words that are fit for its
// client: what a disk says is not.
func Refusal(err error) string {
	for _, known := range []error{state.ErrTampered, state.ErrForeign, state.ErrExpired, state.ErrChanged, state.ErrArguments, state.ErrLost, state.ErrUnkept} {
		if errors.Is(err, known) {
			return known.Error()
		}
	}
	return "the request state cannot be used"
}
