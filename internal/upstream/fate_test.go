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

func TestAServerThatIsItsOwnUpstreamEnds(t *testing.T) {
	for depth, want := range map[int]string{0: "behind 1", upstream.MaxDepth - 1: "behind 4", upstream.MaxDepth: ""} {
		o, log := options(t)
		o.Environment = func() ([]string, int) { return nil, depth }
		_, err := upstream.Dial(t.Context(), program(t, "deep"), o)
		if deep := err != nil && strings.HasPrefix(err.Error(), "this server is itself the upstream of 4 servers"); err == nil || deep != (want == "") {
			t.Errorf("behind %d servers: %v", depth, err)
		}
		if !strings.Contains(log.String(), want) || want == "" && log.String() != "" {
			t.Errorf("behind %d servers the program says %s", depth, log)
		}
	}
}
