package sqldb

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/mcpd/mcpd/internal/base/truncate"
	"github.com/mcpd/mcpd/scripting"
)

// maxShown bounds the names that a message repeats, in bytes. Of longer ones it repeats
// nothing: a part of a value that is hidden would not be known.
const maxShown = 200

// Fault makes the error that the script sees. given is the statement or the path
// as the script has passed it.
func Fault(code, given, format string, args ...any) *scripting.HostError {
	message := fmt.Sprintf(format, args...)
	if given != "" {
		message = shown(given) + ": " + message
	}
	return &scripting.HostError{Code: code, Message: message}
}

func shown(name string) string {
	if len(name) > maxShown {
		return fmt.Sprintf("a name of %d bytes", len(name))
	}
	return strings.ToValidUTF8(name, "�")
}

// Rejection is what a database says of a statement that it does not take, which may hold
// values.
func Rejection(database, said string) string {
	return database + " refuses the statement: " + truncate.Text(strings.ToValidUTF8(said, "�"), truncate.Least)
}

// explain turns a failure into what the script may know of it.
func explain(ctx context.Context, driver Driver, r *Request, err error) error {
	var known *scripting.HostError
	given := r.Name
	if given == "" {
		given = r.given
	}
	switch {
	case errors.As(err, &known):
		return known
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return Fault(scripting.TimedOut, given, "the database was not done in time")
	case ctx.Err() != nil:
		return Fault(scripting.Unavailable, given, "the call was cancelled")
	}
	if code, text := driver.Explain(err); text != "" {
		return Fault(code, given, "%s", text)
	}
	return Fault(scripting.Unavailable, given, "the database cannot be used now")
}
