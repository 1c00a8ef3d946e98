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
	p := &peer{stream: ours, doomed: make(chan struct{}), over: make(chan struct{}), flights: map[uint64]*flight{1: f}}
	p.reader = pipeReader{in: bufio.NewReader(ours), most: maxAnswer, handle: p.handle, failed: p.unread}
	read := make(chan struct{})
	go func() { p.readFor(f); close(read) }()
	for reads := false; !reads; runtime.Gosched() {
		p.reader.mu.Lock()
		reads = p.reader.held
		p.reader.mu.Unlock()
	}
	out := make(chan struct{})
	go func() { p.readOut(); close(out) }()
	stdout := theirs[1].(interface{ Write([]byte) (int, error) })
	if err := writeFrame(stdout, frameOutcome, uvarint(1)); err != nil {
		t.Fatal(err)
	}
	<-read
	if len(f.frames) != 1 {
		t.Error("the outcome was not read")
	}
	<-out // the test ends here if somebody waits
	if _, ok := p.reader.acquire(); ok {
		t.Error("somebody reads again")
	}
	_ = ours.Close()
	for _, end := range theirs {
		_ = end.Close()
	}
}
