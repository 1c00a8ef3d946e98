package secrets

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/mcpd/mcpd/internal/host/oauth"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// outside has one variable, one file and one command.
func outside() Options {
	return Options{
		LookupEnv: func(name string) (string, bool) { return "from-env", name == "TOKEN" },
		ReadFile: func(path string) ([]byte, error) {
			if path != "/run/token" {
				return nil, &os.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
			}
			return []byte("from-file\n"), nil
		},
		RunCommand: func(_ context.Context, argv, _ []string) ([]byte, error) {
			if strings.Join(argv, " ") != "vault read token" {
				return nil, errors.New("it failed with exit code 1")
			}
			return []byte("from-command\r\n"), nil
		},
	}
}

func TestResolve_sources(t *testing.T) {
	rows := []struct {
		name string
		def  Definition
		want string
		err  string
	}{
		{"a variable", Definition{Env: "TOKEN"}, "from-env", ""},
		{"a variable that is not set", Definition{Env: "OTHER"}, "", `secret "s": environment variable OTHER: it is not set`},
		{"a file, without the line break at its end", Definition{File: "/run/token"}, "from-file", ""},
		{"a file that is not there", Definition{File: "/run/other"}, "", `secret "s": file /run/other: file does not exist`},
		{"a command, without the line break at its end", Definition{Command: []string{"vault", "read", "token"}}, "from-command", ""},
		{"a command that fails", Definition{Command: []string{"vault", "no"}}, "", `secret "s": command vault: it failed with exit code 1`},
		{"no source", Definition{}, "", `secret "s": definition: it has no env, file, command or oauth`},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			s := New(outside())
			r.def.Name = "s"
			s.Set([]Definition{r.def})
			got, err := s.Resolve(t.Context(), "s")
			if got != r.want || text(err) != r.err {
				t.Errorf("got %q and error %q, want %q and %q", got, text(err), r.want, r.err)
			}
		})
	}
}

func TestResolve_size(t *testing.T) {
	for _, value := range []string{"", "\n", "\r\n\n", strings.Repeat("x", MaxValue+1)} {
		s := New(Options{LookupEnv: func(string) (string, bool) { return value, true }})
		s.Set([]Definition{{Name: "s", Env: "V"}})
		got, err := s.Resolve(t.Context(), "s")
		if err == nil || got != "" || strings.Contains(err.Error(), "xxx") {
			t.Errorf("a value of %d bytes: got %d bytes and error %v", len(value), len(got), err)
		}
	}
}

func TestNew_defaults(t *testing.T) {
	t.Setenv("MCPD_TEST_SECRET", "value")
	s := New(Options{})
	s.Set([]Definition{{Name: "s", Env: "MCPD_TEST_SECRET"}})
	if _, err := s.Resolve(t.Context(), "s"); err == nil {
		t.Error("the environment was read behind the caller's back")
	}
}

func TestResolve_undefined(t *testing.T) {
	_, err := New(Options{}).Resolve(t.Context(), "s")
	if want := `secret "s" is not defined`; text(err) != want {
		t.Errorf("error is %q, want %q", text(err), want)
	}
}

func TestResolve_file(t *testing.T) {
	path := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(path, []byte("on disk\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := New(Options{})
	s.Set([]Definition{{Name: "s", File: path}, {Name: "endless", File: "/dev/zero"}})
	if got, err := s.Resolve(t.Context(), "s"); got != "on disk" || err != nil {
		t.Errorf("got %q and %v", got, err)
	}
	if _, err := s.Resolve(t.Context(), "endless"); err == nil {
		t.Error("a file without an end was read")
	}
}

func TestResolve_cached(t *testing.T) {
	reads, value := 0, "first"
	s := New(Options{LookupEnv: func(string) (string, bool) { reads++; return value, true }})
	for _, want := range []string{"first", "second"} {
		value = want
		s.Set([]Definition{{Name: "s", Env: "V"}})
		for range 3 {
			if got, err := s.Resolve(t.Context(), "s"); got != want || err != nil {
				t.Errorf("got %q and %v, want %q", got, err, want)
			}
		}
	}
	if reads != 2 {
		t.Errorf("the source was read %d times, want 2", reads)
	}
}

func TestResolve_failureNotCached(t *testing.T) {
	set := false
	s := New(Options{LookupEnv: func(string) (string, bool) { return "value", set }})
	s.Set([]Definition{{Name: "s", Env: "V"}})
	if _, err := s.Resolve(t.Context(), "s"); err == nil {
		t.Fatal("a variable that is not set was read")
	}
	set = true
	if got, err := s.Resolve(t.Context(), "s"); got != "value" || err != nil {
		t.Errorf("got %q and %v", got, err)
	}
}

func TestResolve_concurrent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runs := 0
		s := New(Options{RunCommand: func(context.Context, []string, []string) ([]byte, error) {
			runs++
			time.Sleep(time.Second)
			return []byte("value"), nil
		}})
		s.Set([]Definition{{Name: "s", Command: []string{"c"}}})
		var all sync.WaitGroup
		for range 50 {
			all.Go(func() {
				if got, err := s.Resolve(t.Context(), "s"); got != "value" || err != nil {
					t.Errorf("got %q and %v", got, err)
				}
			})
		}
		all.Wait()
		if runs != 1 {
			t.Errorf("the command ran %d times", runs)
		}
	})
}

func TestResolve_deadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Options{RunCommand: func(ctx context.Context, _, _ []string) ([]byte, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}})
		s.Set([]Definition{{Name: "s", Command: []string{"c"}}})
		start := time.Now()
		var first sync.WaitGroup
		first.Go(func() {
			_, err := s.Resolve(t.Context(), "s")
			if !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != commandTimeout {
				t.Errorf("the command ended after %v with %v", time.Since(start), err)
			}
		})
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := s.Resolve(ctx, "s")
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Second {
			t.Errorf("the second caller waited %v and got %v", time.Since(start), err)
		}
		first.Wait()
	})
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// A call from before a reload must not send the new secret to where only the old one was
// intended.
func TestKey_removedDefinition(t *testing.T) {
	store := New(Options{LookupEnv: func(name string) (string, bool) { return "value-of-" + name, true }})
	dev, prod := Definition{Name: "tok", Env: "DEV"}, Definition{Name: "tok", Env: "PROD"}
	store.Set([]Definition{dev})
	store.Set([]Definition{prod})
	for id, want := range map[string]string{dev.Key(): "value-of-DEV", prod.Key(): "value-of-PROD", "tok": "value-of-PROD"} {
		if got, err := store.Resolve(t.Context(), id); err != nil || got != want {
			t.Errorf("%s is %q, %v; want %q", id, got, err, want)
		}
	}
	for range 20 {
		store.Set(nil)
	}
	if _, err := store.Resolve(t.Context(), dev.Key()); err == nil {
		t.Error("a removed definition is never forgotten")
	}
}

// Stored user tokens are found by this key: it must not change.
func TestKey_isStable(t *testing.T) {
	d := Definition{Name: "mail", Env: "E", File: "f", Command: []string{"c", "d"}, ScriptReadable: true, OAuth: &oauth.Client{
		AuthorizeURL: "https://a.example/authorize", RedirectURL: "http://127.0.0.1:1/", TokenURL: "https://a.example/token", ID: "id", Secret: "s",
		Scopes: []string{"read"}, Params: map[string]string{"audience": "x"}, InBody: true, PrivateNetworks: true,
	}}
	if got := d.Key(); got != "mail#10f370c5ecbcf007" {
		t.Errorf("key %s", got)
	}
}
