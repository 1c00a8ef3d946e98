package worker

import "testing"

func TestReport(t *testing.T) {
	rlimits := Facility{Name: "rlimits", On: true}
	landlock := Facility{Name: "landlock", On: true, Detail: "6"}
	seccomp := Facility{Name: "seccomp", Detail: "it is not permitted here"}
	other := Facility{Name: "x", Detail: "out of luck"}
	for name, c := range map[string]struct {
		report                   Report
		complete                 bool
		line, confining, missing string
	}{
		"complete":   {Report{rlimits, landlock}, true, "rlimits, landlock 6", "rlimits, landlock 6", ""},
		"incomplete": {Report{rlimits, seccomp, landlock, other}, false, "rlimits, landlock 6; without seccomp: it is not permitted here; without x: out of luck", "rlimits, landlock 6", "seccomp: it is not permitted here; x: out of luck"},
		"all off":    {Report{seccomp, other}, false, "nothing; without seccomp: it is not permitted here; without x: out of luck", "nothing", "seccomp: it is not permitted here; x: out of luck"},
		"empty":      {nil, false, "nothing", "nothing", ""},
	} {
		if got := c.report.Complete(); got != c.complete {
			t.Errorf("%s: Complete returns %v", name, got)
		}
		if got := c.report.String(); got != c.line {
			t.Errorf("%s: String returns %q, want %q", name, got, c.line)
		}
		if got := c.report.Confining(); got != c.confining {
			t.Errorf("%s: Confining returns %q, want %q", name, got, c.confining)
		}
		if got := c.report.Missing(); got != c.missing {
			t.Errorf("%s: Missing returns %q, want %q", name, got, c.missing)
		}
	}
}
