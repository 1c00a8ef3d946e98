//go:build !linux

package bench

import "time"

// usedBy returns 0: the processor time of other processes is unknown here.
func usedBy([]int) time.Duration { return 0 }

func startedBy(int) []int { return nil }

// memoryOf returns 0: the memory of other processes is unknown here.
func memoryOf([]int) int64 { return 0 }
