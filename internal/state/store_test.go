package state_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/mcpd/mcpd/internal/state"
	"github.com/mcpd/mcpd/internal/state/statetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestAStoreInMemoryKeepsTheContract(t *testing.T) {
	statetest.Suite{New: func(_ testing.TB, o state.Options) state.Store { return state.NewMemory(o) }}.Run(t)
}
