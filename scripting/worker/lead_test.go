package worker

import (
	"bufio"
	"os/exec"
	"runtime"
	"testing"
)

// TestAProcessThatHasEndedIsReadOutUpToTheLastOutcome: who reads stops with that,
// and nobody waits for more.
func TestAProcessThatHasEndedIsReadOutUpToTheLastOutcome(t *testing.T) {
	ours, theirs, err := connect(&exec.Cmd{})
	if err != nil {
		t.Fatal(err)
	}
	f := &flight{id: 1, frames: make(chan frame, 1)}
	p := &peer{
		stream: ours, doomed: make(chan struct{}), flights: map[uint64]*flight{1: f},
		lead: lead{in: bufio.NewReader(ours), over: make(chan struct{})},
	}
	if !p.takeLead(f) {
		t.Fatal("the call has no lead")
	}
	read := make(chan bool)
	go func() { _, ok := p.readFor(f); read <- ok }()
	out := make(chan struct{})
	go func() { p.readOut(); close(out) }()
	for waits := false; !waits; runtime.Gosched() {
		p.mu.Lock()
		waits = p.gone
		p.mu.Unlock()
	}
	stdout := theirs[1].(interface{ Write([]byte) (int, error) })
	if err := writeFrame(stdout, frameOutcome, uvarint(1)); err != nil {
		t.Fatal(err)
	}
	if !<-read {
		t.Error("the outcome was not read")
	}
	<-out // the test ends here if somebody waits
	if p.takeLead(f) {
		t.Error("somebody reads again")
	}
	_ = ours.Close()
	for _, end := range theirs {
		_ = end.Close()
	}
}
