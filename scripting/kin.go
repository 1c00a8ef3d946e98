package scripting

import "context"

// Kin are the calls that come of one call: those that it makes, and that these
// make. Whoever of them waits for another may hold what that one needs, so that an
// executor has room for them beside its bounds. It is safe for concurrent use.
type Kin struct{ turn chan struct{} }

// NewKin returns kin that are none yet.
func NewKin() *Kin { return &Kin{make(chan struct{}, 1)} }

// Turn waits until no other of the kin waits for room, so that a call which makes
// many stands in line with one. done ends the turn. An error is that of ctx.
func (k *Kin) Turn(ctx context.Context) (done func(), err error) {
	select {
	case k.turn <- struct{}{}:
		return func() { <-k.turn }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
