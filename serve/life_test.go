package serve

import (
	"context"
	"errors"
	"testing"

	"github.com/mcpd/mcpd/internal/base/lazyctx"
)

func TestTheEndOfALifeCancelsWhatLivesAndWhatComesLater(t *testing.T) {
	var l life
	enter := func() (context.Context, uint64) {
		call := lazyctx.WithCancel(t.Context())
		return call, l.enter(call)
	}
	gone, number := enter()
	l.leave(number)
	living, _ := enter()
	over := errors.New("over")
	l.end(over)
	late, _ := enter()
	for _, test := range []struct {
		name string
		ctx  context.Context
		want error
	}{{"left", gone, nil}, {"living", living, over}, {"late", late, over}} {
		if got := context.Cause(test.ctx); !errors.Is(got, test.want) {
			t.Errorf("the call that is %s ended with %v, want %v", test.name, got, test.want)
		}
	}
}
