package upstream_test

import (
	"strings"
	"testing"

	"github.com/mcpd/mcpd/internal/upstream"
)

func TestTheOperatorIsToldHowAProgramEnds(t *testing.T) {
	for name, want := range map[string]string{
		"crash": "the program has ended: exit status 3", "late": "the program has ended: exit status 4",
		"dies": "the program has ended: exit status 137 (killed)", "shuts": "the program has closed its output",
	} {
		t.Run(name, func(t *testing.T) {
			o, log := options(t)
			_, err := upstream.Dial(t.Context(), program(t, name), o)
			if err == nil || err.Error() != want {
				t.Errorf("%v, want %s", err, want)
			}
			if name == "late" && !strings.Contains(log.String(), "its last word") {
				t.Errorf("the log is %s", log)
			}
		})
	}
}
