package worker

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/scripting"
)

// programs are what the test's own binary is when it is called by their names.
var programs = map[string]func() error{
	"worker": func() error { return Main(os.Stdin, os.Stdout) },
	"dies":   func() error { _, _, err := readFrame(os.Stdin, maxFrame); return err },
	"lies":   func() error { return writeFrame(os.Stdout, frameImport, []byte("../secret.js")) },
}

// TestMain makes the test's own binary the program of the pools.
func TestMain(m *testing.M) {
	if program := programs[os.Args[0]]; program != nil {
		if program() != nil {
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

func pool(t *testing.T, program string) *Pool {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := NewPool(path, program)
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

func source(body string) scripting.Source {
	return scripting.Source{Name: "t", Text: diag.WholeFile("t.js", body), Path: "t.js"}
}

func TestWhatIsSoundOrMerelyWrongSurvives(t *testing.T) {
	p := pool(t, "worker")
	for _, body := range []string{"return 1", "return (", strings.Repeat("a();\n", 2000)} {
		if err := p.Try(source(body)); err != nil {
			t.Errorf("%.20q: %v", body, err)
		}
	}
	if len(p.idle) != 1 {
		t.Errorf("%d processes did what one could", len(p.idle))
	}
}

func TestFilesAreAskedForAndNothingElseIs(t *testing.T) {
	src := source("import { a } from './lib/a.js'; import b from './gone.js'; return a + b")
	var asked []string
	src.Import = func(name string) ([]byte, error) {
		asked = append(asked, name)
		if name == "lib/a.js" {
			return []byte("import { c } from './c.js'; export const a = c"), nil
		}
		return nil, fs.ErrNotExist
	}
	if err := pool(t, "worker").Try(src); err != nil {
		t.Fatal(err)
	}
	slices.Sort(asked)
	if want := []string{"gone.js", "lib/a.js", "lib/c.js"}; !slices.Equal(asked, want) {
		t.Errorf("asked for %q, want %q", asked, want)
	}
}

func TestAProcessThatDiesOrLiesIsLost(t *testing.T) {
	for _, program := range []string{"dies", "lies"} {
		src := source("return 1")
		src.Import = func(name string) ([]byte, error) { t.Errorf("%s: asked for %q", program, name); return nil, nil }
		if err := pool(t, program).Try(src); !errors.Is(err, ErrLost) {
			t.Errorf("%s: %v", program, err)
		}
	}
}

func TestAProcessThatDiedWhileIdleIsNotTheBodysFault(t *testing.T) {
	p := pool(t, "worker")
	if err := p.Try(source("return 1")); err != nil {
		t.Fatal(err)
	}
	p.idle[0].kill()
	<-p.idle[0].ended
	if err := p.Try(source("return 2")); err != nil {
		t.Errorf("blamed for the death of an idle process: %v", err)
	}
}

func TestAPoolThatCannotStartItsProgramSaysSo(t *testing.T) {
	p := NewPool("/does/not/exist", "worker")
	if err := p.Try(source("return 1")); err == nil || errors.Is(err, ErrLost) || !strings.Contains(err.Error(), "start a worker") {
		t.Errorf("got %v", err)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	if err := p.Try(source("return 1")); err == nil {
		t.Error("a closed pool started a process")
	}
}

func TestATrialThatSpendsItsTimeIsNoLongerWaitedFor(t *testing.T) {
	var stop atomic.Bool
	ended := make(chan struct{})
	err := within(0, func() error {
		defer close(ended)
		for !stop.Load() {
		}
		return nil
	})
	stop.Store(true)
	<-ended
	if !errors.Is(err, errProcessor) {
		t.Errorf("got %v", err)
	}
}

func TestWhatWasLostIsNotTriedAgain(t *testing.T) {
	p := pool(t, "dies")
	for range 2 {
		if err := p.Try(source("return 1")); !errors.Is(err, ErrLost) {
			t.Fatalf("got %v", err)
		}
	}
	p.path = "/does/not/exist"
	if err := p.Try(source("return 1")); !errors.Is(err, ErrLost) {
		t.Errorf("tried again: %v", err)
	}
	if err := p.Try(source("return 2")); errors.Is(err, ErrLost) {
		t.Error("another source is taken for lost")
	}
}
