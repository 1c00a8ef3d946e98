package files

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"

	"github.com/mcpd/mcpd/scripting"
)

// maxShown bounds the paths that a message repeats, in bytes. Of longer ones it repeats
// nothing: a part of a value that is hidden would not be known.
const maxShown = 200

// fault makes the error that the script sees. given is the path as the script
// has passed it; the arguments are figures of the grant, or nothing else.
func fault(code, given, format string, args ...any) *scripting.HostError {
	message := fmt.Sprintf(format, args...)
	if len(given) > maxShown {
		given = fmt.Sprintf("a path of %d bytes", len(given))
	}
	if given != "" {
		message = strings.ToValidUTF8(given, "�") + ": " + message
	}
	return &scripting.HostError{Code: code, Message: message}
}

// explain turns a failure of the system into what the script may know of it.
func explain(ctx context.Context, given string, err error) error {
	var known *scripting.HostError
	switch {
	case errors.As(err, &known):
		return known
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fault(scripting.TimedOut, given, "the file was not done with in time")
	case ctx.Err() != nil:
		return fault(scripting.Unavailable, given, "the call was cancelled")
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return fault(scripting.NotFound, given, "there is no such file or folder")
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return fault(scripting.Denied, given, "the server may not do this to the file")
	case errors.Is(err, syscall.ENAMETOOLONG):
		return fault(scripting.Invalid, given, "the path is too long for the system")
	}
	return fault(scripting.Unavailable, given, "the file cannot be used now")
}
