package engine

import (
	"context"
	"errors"
	"testing"
	"testing/fstest"

	"github.com/mcpd/mcpd/internal/ratelimit"
)

// deaf is a store that cannot be asked.
type deaf struct{ released int }

func (*deaf) Take(context.Context, []ratelimit.Charge) (*ratelimit.Refusal, error) {
	return nil, errors.New("no route to host")
}
func (d *deaf) Release([]ratelimit.Charge) { d.released++ }
func (*deaf) Keep([]*ratelimit.Limit)      {}

func TestACallThatCannotBeCountedIsDenied(t *testing.T) {
	text := "tool \"t\" {\n  run = \"return 1\"\n}\nlimit \"l\" { rate = \"1/s\" }\n"
	s, err := New(Options{Name: "test", Tools: fstest.MapFS{"t.hcl": {Data: []byte(text), Mode: 0o644}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close(context.Background()) })
	store := &deaf{}
	s.limits = store
	s.pipeline = s.newPipeline()
	r := s.Execute(t.Context(), Request{Name: "t"})
	if r.Err == nil || r.Err.Error() != "POLICY_DENIED: the server cannot count the call" || r.Err.Limited || store.released != 0 {
		t.Errorf("got %+v; %d releases", r.Err, store.released)
	}
}
