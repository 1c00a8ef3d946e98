package systemd

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// beats runs a pulse for almost two minutes and returns when it beat.
func beats(t *testing.T, check func(ctx context.Context, since time.Duration) error) (times []string, log string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var text bytes.Buffer
		ctx, cancel := context.WithTimeout(t.Context(), 119*time.Second)
		defer cancel()
		Pulse{
			Every: time.Minute,
			Check: func(ctx context.Context) error { return check(ctx, time.Since(began)) },
			Beat: func() error {
				times = append(times, time.Since(began).String())
				return nil
			},
			Logger: slog.New(slog.NewTextHandler(&text, nil)),
		}.Run(ctx)
		log = text.String()
	})
	return times, log
}

func TestAServerThatAnswersBeatsTwiceInEachInterval(t *testing.T) {
	got, log := beats(t, func(context.Context, time.Duration) error { return nil })
	if diff := cmp.Diff([]string{"0s", "30s", "1m0s", "1m30s"}, got); diff != "" || log != "" {
		t.Errorf("(-want +got)\n%s\nthe log is %s", diff, log)
	}
}

func TestAServerThatHangsDoesNotBeatAndIsAskedAgainInTime(t *testing.T) {
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
	if !strings.Contains(log, "the server does not answer; systemd is not told that it is alive") {
		t.Errorf("the log is %s", log)
	}
}

func TestAServerThatIsBrokenBeatsNoMore(t *testing.T) {
	got, _ := beats(t, func(context.Context, time.Duration) error { return errors.New("broken") })
	if len(got) > 0 {
		t.Errorf("it beats at %v", got)
	}
}

func TestAPulseEndsInTheMiddleOfACheck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		began := time.Now()
		Pulse{
			Every: time.Minute,
			Check: func(ctx context.Context) error {
				cancel()
				return ctx.Err()
			},
			Beat:   func() error { t.Error("it beats"); return nil },
			Logger: slog.New(slog.DiscardHandler),
		}.Run(ctx)
		if took := time.Since(began); took != 0 {
			t.Errorf("it ends after %s", took)
		}
	})
}
