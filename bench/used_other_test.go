//go:build !linux

package bench

import (
	"time"

	"github.com/mcpd/mcpd/internal/cputime"
)

// used returns the processor time of this process: that of others is not known here.
func used([]int) time.Duration { return cputime.Used() }

func started() []int { return nil }
