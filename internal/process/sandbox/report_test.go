package sandbox

import (
	"errors"
	"syscall"
	"testing"
)

func TestFacility_detail(t *testing.T) {
	for want, err := range map[string]error{
		"it is not permitted here": syscall.EPERM,
		"the kernel has none":      syscall.ENOSYS,
		"out of luck":              errors.New("out of luck"),
	} {
		if got := facility("landlock", err); got.On || got.Detail != want {
			t.Errorf("%v: got %+v, want the detail %q", err, got, want)
		}
	}
	if got := facility("landlock", nil); !got.On || got.Detail != "" {
		t.Errorf("no error: got %+v", got)
	}
}
