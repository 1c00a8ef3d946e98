package engine

import (
	"github.com/mcpd/mcpd/call"
)

import "context"

// Hook is a Go hook. It runs in line, so it should be quick; a hook that
// panics is logged and never felt by the caller.
type Hook func(ctx context.Context, event call.Event)
