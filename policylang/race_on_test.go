//go:build race

package policylang

// raceEnabled says that pools drop things at random, so that allocations
// cannot be counted.
const raceEnabled = true
