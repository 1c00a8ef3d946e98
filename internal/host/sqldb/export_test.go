package sqldb

// PoolState is the state of a pool for tests.
type PoolState struct {
	Free, Leases int
	Retire       func()
}

// Pools returns the pools by grant hash.
func (b *Broker) Pools() map[[32]byte]PoolState {
	b.mu.Lock()
	defer b.mu.Unlock()
	pools := map[[32]byte]PoolState{}
	for k, p := range b.pools {
		pools[k] = PoolState{Free: len(p.free), Leases: p.leases, Retire: func() { b.closeIdle(k, p) }}
	}
	return pools
}
