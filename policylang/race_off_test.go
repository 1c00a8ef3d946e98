//go:build !race

package policylang

const raceEnabled = false
