package scripting

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	mathrand "math/rand/v2"
)

// Seed is what all randomness of a call comes from, so that a replay repeats it.
type Seed [32]byte

// NewSeed returns a seed that nobody can foretell.
func NewSeed() (s Seed) {
	_, _ = rand.Read(s[:]) // which never fails
	return s
}

// secret returns the stream of what crypto makes. What others show of a call
// tells nothing about it.
func (s Seed) secret() *mathrand.ChaCha8 { return mathrand.NewChaCha8(s.derive("mcpd crypto ")) }

// public returns the stream of Math.random, which may be foretold by who knows
// some of it.
func (s Seed) public() *mathrand.PCG {
	d := s.derive("mcpd math ")
	return mathrand.NewPCG(binary.LittleEndian.Uint64(d[:8]), binary.LittleEndian.Uint64(d[8:16]))
}

// derive returns a seed from which s cannot be found.
func (s Seed) derive(purpose string) [32]byte { return sha256.Sum256(append([]byte(purpose), s[:]...)) }
