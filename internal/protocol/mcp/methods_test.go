package mcp_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/internal/protocol/mcp"
	"github.com/mcpd/mcpd/internal/protocol/mcp/mcptest"
)

// TestEveryMethodHasItsRequest: whoever adds a method says what a request of it is,
// and with that what is tested of all methods is tested of it.
func TestEveryMethodHasItsRequest(t *testing.T) {
	said := map[string][2]bool{}
	for _, r := range mcptest.Requests() {
		if _, twice := said[r.Method]; twice {
			t.Errorf("%s has two requests", r.Method)
		}
		said[r.Method] = [2]bool{r.Legacy, r.Modern}
	}
	if diff := cmp.Diff(mcp.Methods(), said); diff != "" {
		t.Errorf("the methods and their eras, legacy and modern (-served +requests)\n%s", diff)
	}
}
