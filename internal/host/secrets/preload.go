package secrets

import (
	"context"
	"os"
	"slices"
	"time"
)

// preloadTimeout bounds the wait for variables and files. Values that are read later are
// redacted from then on.
const preloadTimeout = 2 * time.Second

// currentRedactor returns the redactor for all known values: those resolved, and those that
// variables and files held when they were last defined.
func (s *Store) currentRedactor() *redactor {
	if s.needsPreload.Load() {
		s.preload()
	}
	return s.redactor.Load()
}

// preload reads the variables and files of the definitions, so that their values are redacted
// before first use: a script may obtain them in another way. It does not cache the values;
// Resolve reads the source again. It ignores sources that cannot be read; Resolve reports the
// error.
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

// collectPreloaded adds values until over fires, and returns the number of missing ones.
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

// preloadOne returns the value of a variable or file, by secret name. It returns nil if the
// source cannot be read, or is a pipe: reading would block and consume data.
func (s *Store) preloadOne(d Definition) map[string]string {
	if info, err := os.Stat(d.File); err == nil && !info.Mode().IsRegular() {
		return nil
	}
	value, err := s.read(context.Background(), d) // neither source needs a context
	if err != nil {
		return nil
	}
	return map[string]string{d.Name: value}
}

// preloadable returns the current definitions with values that exist before they are requested.
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

// isPreloadable reports whether a value exists before it is requested.
func isPreloadable(d Definition) bool { return d.Env != "" || d.File != "" }

// addValues adds values to the redactor, and removes the least recently used ones of a name
// beyond its limit. The caller holds mu.
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
