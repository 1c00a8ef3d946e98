package sqldb

// PoolState is what tests see of a pool.
type PoolState struct {
	Free, Leases int
	Retire       func()
}

// Pools returns the pools by the hashes of their grants.
func (b *Broker) Pools() map[[32]byte]PoolState {
	b.mu.Lock()
	defer b.mu.Unlock()
	pools := map[[32]byte]PoolState{}
	for k, p := range b.pools {
		pools[k] = PoolState{Free: len(p.free), Leases: p.leases, Retire: func() { b.closeIdle(k, p) }}
	}
	return pools
}
