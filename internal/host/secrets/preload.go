package secrets

import (
	"context"
	"os"
	"slices"
	"time"
)

// lookTime is how long variables and files may take to be looked at. What a disk
// that does not answer holds is hidden once it does.
const preloadTimeout = 2 * time.Second

// currentRedactor returns the redactor of all that is to be hidden from now on: what was
// resolved, and what variables and files held when they were last defined.
func (s *Store) currentRedactor() *redactor {
	if s.needsPreload.Load() {
		s.preload()
	}
	return s.redactor.Load()
}

// look hides what the variables and files of the definitions hold, so that a value
// is hidden before it is first used: a script may come by it in another way. It is
// not kept: whoever asks for a secret gets what its source holds then. What
// cannot be read hides nothing; whoever asks for it is told.
func (s *Store) preload() {
	s.preloadMu.Lock()
	defer s.preloadMu.Unlock()
	for s.needsPreload.Load() {
		defs, generation := s.preloadable()
		values := make(chan map[string]string, len(defs))
		for _, d := range defs {
			go func() { values <- s.preloadOne(d) }()
		}
		late := s.collectPreloaded(values, len(defs), time.After(preloadTimeout))
		if late > 0 {
			go s.collectPreloaded(values, late, nil)
		}
		s.mu.Lock()
		if s.generation == generation {
			s.needsPreload.Store(false)
		}
		s.mu.Unlock()
	}
}

// gather hides values as long as it has time, and returns how many did not come.
func (s *Store) collectPreloaded(values <-chan map[string]string, n int, over <-chan time.Time) (late int) {
	seen := map[string]string{}
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.addValues(seen)
	}()
	for ; n > 0; n-- {
		select {
		case value := <-values:
			for name, v := range value {
				seen[name] = v
			}
		case <-over:
			return n
		}
	}
	return 0
}

// held returns what a variable or a file holds, by the name of its secret; nothing
// where that cannot be read, or is a pipe: reading one would take from it, and wait.
func (s *Store) preloadOne(d Definition) map[string]string {
	if info, err := os.Stat(d.File); err == nil && !info.Mode().IsRegular() {
		return nil
	}
	value, err := s.read(context.Background(), d) // neither needs a context
	if err != nil {
		return nil
	}
	return map[string]string{d.Name: value}
}

// atRest returns the definitions as they are now whose values are there before
// anyone asks for them.
func (s *Store) preloadable() (defs []Definition, generation uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, e := range s.entries {
		if id == e.def.Name && isPreloadable(e.def) {
			defs = append(defs, e.def)
		}
	}
	return defs, s.generation
}

// rests reports whether a value is there before anyone asks for it.
func isPreloadable(d Definition) bool { return d.Env != "" || d.File != "" }

// hide adds values to the redactor, and removes those that were used longest ago
// where a name has too many. Called with the mutex held.
func (s *Store) addValues(values map[string]string) {
	changed := false
	for name, value := range values {
		all := s.values[name]
		if at := slices.IndexFunc(all, func(c secretForms) bool { return c.value == value }); at >= 0 {
			again := all[at]
			s.values[name] = append(slices.Delete(all, at, at+1), again)
			continue
		}
		most := maxOldValues
		if e := s.entries[name]; e != nil && e.users != nil {
			most = maxOldUserValues
		}
		all = append(all, newSecretForms(value))
		s.values[name] = slices.Delete(all, 0, max(0, len(all)-most))
		changed = true
	}
	if changed {
		s.redactor.Store(newRedactor(s.values))
	}
}
