package host

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"

	"github.com/mcpd/mcpd/internal/host/kv"
	"github.com/mcpd/mcpd/internal/language/grant"
	"github.com/mcpd/mcpd/internal/state"
)

// kept are the values of one test, in a store of its own. Mocks say what it
// holds at the beginning.
type kept struct {
	broker *kv.Broker
	// begun are the spaces that hold what the mocks say.
	begun map[string]bool
}

// keep carries out an operation on the values of the test.
func (m *Mocks) keep(ctx context.Context, g grant.KV, space, op string, payload []byte) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.kept.broker == nil {
		store := state.NewMemory(state.Options{})
		m.kept = kept{
			broker: kv.New(func() (state.Store, error) { return store, nil }, slog.New(slog.DiscardHandler)),
			begun:  map[string]bool{},
		}
	}
	if !m.kept.begun[space] {
		m.kept.begun[space] = true
		if err := m.begin(ctx, g, space); err != nil {
			return nil, err
		}
	}
	m.useKeys(g, payload)
	return m.kept.broker.Do(ctx, g, space, op, payload)
}

// begin keeps what the mocks say in a space; mu is held.
func (m *Mocks) begin(ctx context.Context, g grant.KV, space string) error {
	for _, mock := range m.known {
		if mock.Object != kv.Prefix+g.Name {
			continue
		}
		payload, err := json.Marshal(map[string]any{"key": mock.Request, "value": json.RawMessage(mock.Body)})
		if err != nil {
			return err
		}
		if _, err := m.kept.broker.Do(ctx, g, space, kv.Prefix+"put", payload); err != nil {
			return err
		}
	}
	return nil
}

// useKeys notes which mocks an operation is of: those under its key, or those
// that it lists; mu is held.
func (m *Mocks) useKeys(g grant.KV, payload []byte) {
	var asked struct {
		Key    *string `json:"key"`
		Prefix string  `json:"prefix"`
	}
	if json.Unmarshal(payload, &asked) != nil {
		return
	}
	for i, mock := range m.known {
		listed := asked.Key == nil && strings.HasPrefix(mock.Request, asked.Prefix)
		if mock.Object == kv.Prefix+g.Name && (listed || asked.Key != nil && mock.Request == *asked.Key) {
			m.used[i] = true
		}
	}
}
