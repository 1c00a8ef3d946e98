package sandbox

import (
	"errors"
	"syscall"
)

// reason tells in words what an error of the system means for a facility.
func reason(err error) string {
	switch {
	case errors.Is(err, syscall.ENOSYS), errors.Is(err, syscall.EINVAL):
		return "the kernel has none"
	case errors.Is(err, syscall.EOPNOTSUPP):
		return "it is off in this kernel"
	case errors.Is(err, syscall.EPERM), errors.Is(err, syscall.EACCES):
		return "it is not permitted here"
	}
	return err.Error()
}
