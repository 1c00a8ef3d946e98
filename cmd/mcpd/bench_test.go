package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/internal/ops/watch"
	"github.com/mcpd/mcpd/serve"
)

// BenchmarkSaveToServed measures the time from saving one of a thousand files to
// serving its snapshot: notification, debounce and reload.
func BenchmarkSaveToServed(b *testing.B) {
	folder := filepath.Join(b.TempDir(), "tools.d")
	if err := os.Mkdir(folder, 0o755); err != nil {
		b.Fatal(err)
	}
	save := func(i int, answer string) {
		text := fmt.Sprintf("tool \"tool_%04d\" {\n  input \"id\" { type = string }\n  run = <<JS\n    return %q + input.id;\n  JS\n}\n", i, answer)
		if err := os.WriteFile(filepath.Join(folder, fmt.Sprintf("t%04d.hcl", i)), []byte(text), 0o644); err != nil {
			b.Fatal(err)
		}
	}
	for i := range 1000 {
		save(i, "first")
	}
	s, err := engine.New(engine.Options{Name: "bench", Files: engine.Files{Tools: engine.Dir(folder)}})
	if err != nil {
		b.Fatal(err)
	}
	watcher, err := watch.New(watch.Options{Roots: []string{folder}})
	if err != nil {
		b.Fatal(err)
	}
	if _, err := s.Load(b.Context()); err != nil {
		b.Fatal(err)
	}
	front := serve.New(s, serve.Options{})
	o := &runningServer{flags: &serveFlags{files: projectFlags{tools: folder}}, server: s, front: front, logger: slog.New(slog.DiscardHandler)}
	served := make(chan struct{}, 1)
	s.Watch(func([]string) { served <- struct{}{} })
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{}, 2)
	go func() { _ = watcher.Run(ctx); done <- struct{}{} }()
	go func() { o.follow(ctx, watcher.Changes(), nil); done <- struct{}{} }()
	for i := 0; b.Loop(); i++ {
		save(500, fmt.Sprint("version ", i))
		<-served
	}
	cancel()
	<-done
	<-done
	if err := front.Shutdown(context.Background()); err != nil {
		b.Fatal(err)
	}
}
