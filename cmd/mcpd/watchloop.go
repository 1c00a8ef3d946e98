package main

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/internal/ops/watch"
)

// roots returns the directories to watch.
func (f *projectFlags) roots(e env) []string {
	if f.folder(e) != nil {
		return nil
	}
	return []string{e.resolve(f.tools)}
}

// watched returns the options of a watcher of the files. The types that mcpd writes are not among
// them.
func (f *projectFlags) watched(e env, logger *slog.Logger) watch.Options {
	return watch.Options{
		Roots: f.roots(e), Files: []string{e.resolve(f.config), e.resolve(f.lockPath())}, Globs: []string{e.resolve(filepath.Join(filepath.Dir(f.config), "*.mcpdvars"))},
		Skip: func(name string) bool { return name == ".git" || name == typesDir }, Logger: logger,
	}
}

// changeOf converts a change of the watcher to paths relative to the tools directory.
func (f *projectFlags) changeOf(e env, seen watch.Change) engine.Change {
	change := engine.Change{All: seen.Rescan}
	for _, name := range seen.Paths {
		relative, err := filepath.Rel(e.resolve(f.tools), name)
		if err == nil && relative != ".." && !strings.HasPrefix(relative, ".."+string(filepath.Separator)) {
			change.Paths = append(change.Paths, filepath.ToSlash(relative))
			continue
		}
		change.Config = true
	}
	return change
}

// onChanges calls run at once, after each change of the watched files and after each signal to
// reload. It ends when ctx is done, or when run reports that it is done.
func (f *projectFlags) onChanges(ctx context.Context, e env, hup <-chan os.Signal, o watch.Options, run func(engine.Change) (done bool, err error)) error {
	watcher, err := watch.New(o)
	if err != nil {
		return findingsError("watch files: %v", err)
	}
	watching, cancel := context.WithCancel(ctx)
	var failed error
	var busy sync.WaitGroup
	busy.Go(func() { failed = watcher.Run(watching) })
	done, change := false, engine.Change{All: true}
	for more := true; more && !done; {
		if done, err = run(change); done || err != nil {
			break
		}
		select {
		case <-ctx.Done():
			more = false
		case <-hup:
			change = engine.Change{All: true}
		case seen, ok := <-watcher.Changes():
			more, change = ok, f.changeOf(e, seen)
		}
	}
	cancel()
	busy.Wait()
	if err == nil && failed != nil {
		return findingsError("watch files: %v", failed)
	}
	return err
}
