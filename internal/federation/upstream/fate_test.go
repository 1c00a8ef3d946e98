package upstream_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/mcpd/mcpd/internal/federation/upstream"
)

func TestTheOperatorIsToldHowAProgramEnds(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"crash": "the program has ended: exit status 3", "late": "the program has ended: exit status 4; its last words: its last word",
		"dies": "the program has ended: exit status 137 (killed)", "shuts": "the program has closed its output",
		"wordy":   "the program has ended: exit status 3; its last words: config missing: [secret:key] \ufffd[31m" + strings.Repeat("é", 82) + "…",
		"reasons": "the program has closed its output; its last words: out of paper",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o, log := options(t)
			o.Redact = strings.NewReplacer("hunter2", "[secret:key]").Replace
			_, err := upstream.Dial(t.Context(), program(t, name), o)
			if err == nil || err.Error() != want {
				t.Errorf("%v, want %s", err, want)
			}
			if name == "late" && !strings.Contains(log.String(), "its last word") {
				t.Errorf("the log is %s", log)
			}
		})
	}
}

func TestAServerThatIsItsOwnUpstreamEnds(t *testing.T) {
	for depth, want := range map[int]string{0: "behind 1", upstream.MaxDepth - 1: "behind 4", upstream.MaxDepth: ""} {
		o, log := options(t)
		o.Environment = func() ([]string, int) { return nil, depth }
		_, err := upstream.Dial(t.Context(), program(t, "deep"), o)
		if deep := err != nil && strings.HasPrefix(err.Error(), "this server is itself the upstream of 4 servers"); err == nil || deep != (want == "") {
			t.Errorf("behind %d servers: %v", depth, err)
		}
		if !strings.Contains(log.String(), want) || want == "" && log.String() != "" {
			t.Errorf("behind %d servers the program says %s", depth, log)
		}
	}
}

func TestTheOperatorIsToldWhatAProgramSaysThatIsNotReadyInTime(t *testing.T) {
	t.Parallel()
	o, log := options(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	go func() {
		for !strings.Contains(log.String(), "waiting for the database") && ctx.Err() == nil {
			time.Sleep(10 * time.Millisecond)
		}
		cancel(errors.New("too late"))
	}()
	_, err := upstream.Dial(ctx, program(t, "stuck"), o)
	if want := "too late; its last words: waiting for the database"; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}
