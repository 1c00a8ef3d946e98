package sandbox

import (
	"errors"
	"syscall"
	"testing"
)

func TestAReportIsOneLine(t *testing.T) {
	for want, r := range map[string]Report{
		"rlimits, landlock 6":                            {{Name: "rlimits", On: true}, {Name: "landlock", On: true, Detail: "6"}},
		"rlimits; without landlock: the kernel has none": {with("rlimits", nil), with("landlock", syscall.ENOSYS)},
		"nothing; without seccomp: it is not permitted here; without landlock: out of luck": {with("seccomp", syscall.EPERM), with("landlock", errors.New("out of luck"))},
		"nothing": nil,
	} {
		if got := r.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestReport_missing(t *testing.T) {
	r := Report{{Name: "rlimits", On: true}, with("seccomp", syscall.EPERM), {Name: "landlock", On: true, Detail: "6"}, with("x", errors.New("out of luck"))}
	if got := r.Confining(); got != "rlimits, landlock 6" {
		t.Errorf("confining: %q", got)
	}
	if got := r.Missing(); got != "seccomp: it is not permitted here; x: out of luck" {
		t.Errorf("missing: %q", got)
	}
}

func TestAReportIsCompleteWhenNothingIsMissing(t *testing.T) {
	on, off := with("a", nil), with("b", syscall.ENOSYS)
	for _, c := range []struct {
		report Report
		want   bool
	}{{Report{on, on}, true}, {Report{on, off}, false}, {nil, false}} {
		if got := c.report.Complete(); got != c.want {
			t.Errorf("%v: %v", c.report, got)
		}
	}
}
