package systemd

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

// manager is the receiver of a notifier.
type manager struct{ conn *net.UnixConn }

// newManager returns a manager that listens at an address.
func newManager(t *testing.T, address string) manager {
	t.Helper()
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: address, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return manager{conn}
}

// hears returns the next message.
func (m manager) hears(t *testing.T) string {
	t.Helper()
	message := make([]byte, 4096)
	n, err := m.conn.Read(message)
	if err != nil {
		t.Fatal(err)
	}
	return string(message[:n])
}

func TestNotifier_states(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("SKIPPED: systemd needs Linux")
	}
	for _, address := range []string{filepath.Join(t.TempDir(), "s"), "@mcpd-" + t.Name()} {
		m := newManager(t, address)
		n, err := New(Env{Socket: address})
		if err != nil {
			t.Fatal(err)
		}
		n.elapsed = func() (time.Duration, error) { return 3*time.Second + 7*time.Microsecond, nil }
		var got []string
		for _, send := range []func() error{
			func() error { return n.Ready("serving 1 tool\nREADY=0") }, n.Reloading, n.Watchdog, func() error { return n.Stopping("shutting down") },
		} {
			if err := send(); err != nil {
				t.Fatal(err)
			}
			got = append(got, m.hears(t))
		}
		want := []string{
			"READY=1\nSTATUS=serving 1 tool READY=0\n", "RELOADING=1\nMONOTONIC_USEC=3000007\n", "WATCHDOG=1\n", "STOPPING=1\nSTATUS=shutting down\n",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got)\n%s", address, diff)
		}
	}
}

func TestElapsed_monotonic(t *testing.T) {
	first, err := monotonicNow()
	if err != nil {
		t.Fatal(err)
	}
	second, err := monotonicNow()
	if err != nil || second < first || runtime.GOOS == "linux" && first == 0 {
		t.Errorf("the clock reads %s, then %s, %v", first, second, err)
	}
}

func TestNotifier_nil(t *testing.T) {
	n, err := New(Env{})
	if n != nil || err != nil {
		t.Errorf("got a notifier %v, %v", n, err)
	}
	if err := errors.Join(n.Ready("x"), n.Reloading(), n.Watchdog(), n.Stopping("x")); err != nil {
		t.Error(err)
	}
}

func TestNotifier_managerGone(t *testing.T) {
	n, err := New(Env{Socket: filepath.Join(t.TempDir(), "gone")})
	if err != nil {
		t.Fatal(err)
	}
	if err := n.Ready("x"); err == nil || !strings.HasPrefix(err.Error(), "notify systemd: ") {
		t.Errorf("got error %v", err)
	}
}

func TestVariables_invalid(t *testing.T) {
	for _, socket := range []string{"relative", "@", "vsock:2:1234"} {
		if n, err := New(Env{Socket: socket}); err == nil || !strings.Contains(err.Error(), "NOTIFY_SOCKET is") {
			t.Errorf("%s: %v, %v", socket, n, err)
		}
	}
	for _, interval := range []string{"x", "0", "-1", "1s", "99999999999999999999", "31536000000001"} {
		if every, err := (Env{Interval: interval}).WatchdogInterval(1); err == nil || !strings.Contains(err.Error(), "WATCHDOG_USEC is") {
			t.Errorf("%s: %v, %v", interval, every, err)
		}
	}
}

func TestVariables_watchdogPID(t *testing.T) {
	for _, r := range []struct {
		v    Env
		want time.Duration
	}{
		{Env{}, 0},
		{Env{Interval: "3000000"}, 3 * time.Second},
		{Env{Interval: "3000000", Process: "7"}, 3 * time.Second},
		{Env{Interval: "3000000", Process: "8"}, 0},
	} {
		if got, err := r.v.WatchdogInterval(7); err != nil || got != r.want {
			t.Errorf("%+v: %s, %v, want %s", r.v, got, err, r.want)
		}
	}
}

// beats runs a pulse for almost two minutes and returns the times of its messages.
func beats(t *testing.T, check func(ctx context.Context, since time.Duration) error) (times []string, log string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var text bytes.Buffer
		ctx, cancel := context.WithTimeout(t.Context(), 119*time.Second)
		defer cancel()
		Watchdog{
			Interval: time.Minute,
			Check:    func(ctx context.Context) error { return check(ctx, time.Since(began)) },
			Notify: func() error {
				times = append(times, time.Since(began).String())
				return nil
			},
			Logger: slog.New(slog.NewTextHandler(&text, nil)),
		}.Run(ctx)
		log = text.String()
	})
	return times, log
}

func TestPulse_healthy(t *testing.T) {
	got, log := beats(t, func(context.Context, time.Duration) error { return nil })
	if diff := cmp.Diff([]string{"0s", "30s", "1m0s", "1m30s"}, got); diff != "" || log != "" {
		t.Errorf("(-want +got)\n%s\nlog: %s", diff, log)
	}
}

func TestPulse_hangs(t *testing.T) {
	got, log := beats(t, func(ctx context.Context, since time.Duration) error {
		if since != 30*time.Second {
			return nil
		}
		<-ctx.Done() // for a quarter of the interval
		return ctx.Err()
	})
	if diff := cmp.Diff([]string{"0s", "48.75s", "1m18.75s", "1m48.75s"}, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if !strings.Contains(log, "check server health") {
		t.Errorf("log: %s", log)
	}
}

func TestPulse_failedCheck(t *testing.T) {
	got, _ := beats(t, func(context.Context, time.Duration) error { return errors.New("broken") })
	if len(got) > 0 {
		t.Errorf("messages at %v", got)
	}
}

func TestPulse_stopsDuringCheck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		began := time.Now()
		Watchdog{
			Interval: time.Minute,
			Check: func(ctx context.Context) error {
				cancel()
				return ctx.Err()
			},
			Notify: func() error { t.Error("unexpected message"); return nil },
			Logger: slog.New(slog.DiscardHandler),
		}.Run(ctx)
		if took := time.Since(began); took != 0 {
			t.Errorf("returned after %s", took)
		}
	})
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
