//go:build race

package policylang

// raceEnabled means that pools drop items at random, so allocations cannot be counted.
const raceEnabled = true
