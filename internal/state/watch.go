package state

func (s *store) WatchTask(owner Owner, id string) (changes <-chan struct{}, stop func(), err error) {
	unlock, err := s.open()
	if err != nil {
		return nil, nil, err
	}
	defer unlock()
	e, ok := s.find(taskKind, id)
	if !ok || e.Owner != owner.key() {
		return nil, nil, ErrNotFound
	}
	watch := make(chan struct{}, 1)
	if s.watches[id] == nil {
		s.watches[id] = map[chan struct{}]bool{}
	}
	s.watches[id][watch] = true
	return watch, func() { s.stopWatch(id, watch) }, nil
}

func (s *store) stopWatch(id string, watch chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.watches[id], watch)
	if len(s.watches[id]) == 0 {
		delete(s.watches, id)
	}
}

// notify tells all who watch a task that it has changed; mu is held.
func (s *store) notify(id string) {
	for watch := range s.watches[id] {
		select {
		case watch <- struct{}{}:
		default: // what is there to receive tells of this change too
		}
	}
}

// unwatch tells all who watch a task that it is gone; mu is held.
func (s *store) unwatch(id string) {
	for watch := range s.watches[id] {
		close(watch)
	}
	delete(s.watches, id)
}
