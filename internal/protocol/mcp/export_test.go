package mcp

import (
	"testing"

	"go.uber.org/goleak"
)

// Methods returns the method table of a server with tasks: whether legacy and
// modern revisions have each method.
func Methods() map[string][2]bool {
	methods := map[string][2]bool{}
	for name, m := range methodTable(true) {
		methods[name] = [2]bool{m.eras&legacy != 0, m.eras&modern != 0}
	}
	return methods
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
