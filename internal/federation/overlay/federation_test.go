package overlay

import (
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpd/mcpd/internal/federation"
)

func TestEnvironment_certificates(t *testing.T) {
	set := map[string]string{
		"PATH": "/bin", "NODE_EXTRA_CA_CERTS": "/etc/ca.pem", "SSL_CERT_FILE": "/etc/all.pem", "SSL_CERT_DIR": "/etc/certs",
		"HTTPS_PROXY": "http://me:hunter2@proxy", "NODE_OPTIONS": "--require x", "MCPD_UPSTREAM_DEPTH": "2",
	}
	env, depth := environment(func(name string) (string, bool) {
		value, ok := set[name]
		return value, ok
	})
	slices.Sort(env)
	want := []string{"NODE_EXTRA_CA_CERTS=/etc/ca.pem", "PATH=/bin", "SSL_CERT_DIR=/etc/certs", "SSL_CERT_FILE=/etc/all.pem"}
	if !slices.Equal(env, want) || depth != 2 {
		t.Errorf("got %q at depth %d, want %q", env, depth, want)
	}
}

// The interval depends on the time that the relist took, not on the start that it waited for.
func TestNotifyLoop_resourceAfterSlowRelist(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const start = 3 * time.Second
		told := make(chan time.Time, 1)
		relist := func() time.Duration {
			time.Sleep(start)
			return time.Millisecond
		}
		f := New(federation.Options{Logger: slog.New(slog.DiscardHandler), Relist: relist, Update: func([]string) { told <- time.Now() }})
		defer f.Close()
		f.notifier.Go(f.notifyLoop)
		f.listChanged <- struct{}{}
		time.Sleep(start)
		synctest.Wait()
		f.watches.subscribed["note://a"] = "notes"
		f.watches.updated("notes", "note://a")
		changed := time.Now()
		if late := (<-told).Sub(changed); late != minInterval {
			t.Errorf("the update is reported after %s", late)
		}
	})
}
