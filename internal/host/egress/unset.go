package egress

import (
	"context"
	"errors"
	"fmt"

	"github.com/mcpd/mcpd/scripting"
)

// errControl is why a value can be no header.
var errControl = errors.New("it holds a control character")

// unsetError is a header of a grant that cannot be set, in words for the operator: they name
// the secret, and where it comes from.
type unsetError struct {
	*scripting.HostError
	header string
	cause  error
}

// Error names the header, and says why.
func (e *unsetError) Error() string { return fmt.Sprintf("the header %q: %v", e.header, e.cause) }

// Unwrap returns the error that scripts get.
func (e *unsetError) Unwrap() error { return e.HostError }

// unread is the error of a header whose secret cannot be read.
func unread(header string, cause error) error {
	return &unsetError{fault(scripting.Unavailable, "a secret that the grant needs could not be read"), header, cause}
}

// unsendable is the error of a header that is none.
func unsendable(header string) error {
	return &unsetError{fault(scripting.Unavailable, "a header that the grant sets cannot be sent"), header, errControl}
}

// withheld returns what a script may know of a header that cannot be set, and tells the
// operator's log the rest.
func (c *client) withheld(ctx context.Context, err error) error {
	unset, ok := errors.AsType[*unsetError](err)
	switch {
	case !ok:
		return err
	case unset.cause == errControl:
		c.options.Logger.WarnContext(ctx, "a header of a grant cannot be sent: it holds a control character",
			"grant", c.grant.Name, "header", unset.header)
	default:
		c.options.Logger.WarnContext(ctx, "a secret of a grant could not be read",
			"grant", c.grant.Name, "header", unset.header, "error", unset.cause)
	}
	return unset.HostError
}
