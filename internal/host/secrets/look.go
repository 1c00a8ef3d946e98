package secrets

import (
	"context"
	"os"
	"slices"
)

// covered returns the veil over all that is to be hidden from now on: what was
// resolved, and what variables and files held when they were last defined.
func (s *Store) covered() *veil {
	if s.unseen.Load() {
		s.look()
	}
	return s.veil.Load()
}

// look hides what the variables and files of the definitions hold, so that a value
// is hidden before it is first used: a script may come by it in another way. It is
// not kept: whoever asks for a secret gets what its source holds then. What
// cannot be read hides nothing; whoever asks for it is told.
func (s *Store) look() {
	s.looking.Lock()
	defer s.looking.Unlock()
	for s.unseen.Load() {
		defs, generation := s.lying()
		seen := map[string]string{}
		for _, d := range defs {
			// Variables and files need no context.
			if value, err := s.read(context.Background(), d); err == nil {
				seen[d.Name] = value
			}
		}
		s.mu.Lock()
		s.hide(seen)
		if s.generation == generation {
			s.unseen.Store(false)
		}
		s.mu.Unlock()
	}
}

// lying returns the definitions as they are now whose values lie where anyone can
// look without an effect: reading a pipe would take from it, and wait.
func (s *Store) lying() (defs []Def, generation uint64) {
	s.mu.Lock()
	for id, e := range s.entries {
		if id == e.def.Name && lies(e.def) {
			defs = append(defs, e.def)
		}
	}
	generation = s.generation
	s.mu.Unlock()
	return slices.DeleteFunc(defs, func(d Def) bool {
		info, err := os.Stat(d.File)
		return err == nil && !info.Mode().IsRegular()
	}), generation
}

// lies reports whether a value is there before anyone asks for it.
func lies(d Def) bool { return d.Env != "" || d.File != "" }

// hide puts values under the veil. Called with the mutex held.
func (s *Store) hide(values map[string]string) {
	changed := false
	for name, value := range values {
		if slices.Contains(s.hidden[name], value) {
			continue
		}
		all := append(s.hidden[name], value)
		s.hidden[name] = all[max(0, len(all)-remembered):]
		changed = true
	}
	if changed {
		s.veil.Store(weave(s.hidden))
	}
}
