package upstream

import (
	"fmt"
	"time"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/base/truncate"
)

// maxWords is how much is shown of the last words of a program, in bytes.
const maxWords = 200

// note keeps a line of the standard error as the last one.
func (p *program) note(line []byte) {
	said := truncate.Text(string(line), maxNoise)
	p.last.Store(&said)
}

// heard waits a little until the standard error of a program has been read that has ended:
// others may hold it open.
func (p *program) heard() {
	select {
	case <-p.told:
	case <-time.After(leaveTime):
	}
}

// explained is an error, which is for the operator, with the last line that the program has
// written to its standard error. Nil stands for a server over HTTP, which has none.
func (p *program) explained(err error) error {
	if p == nil {
		return err
	}
	words := p.words()
	if words == "" {
		return err
	}
	return fmt.Errorf("%w; its last words: %s", err, words)
}

// words are the last line, without secrets and as a terminal may show it. Secrets go first:
// no part of one is left where the line is cut.
func (p *program) words() string {
	last := p.last.Load()
	if last == nil {
		return ""
	}
	said := *last
	if redact := p.link.options.Redact; redact != nil {
		said = redact(said)
	}
	said = diag.Printable(said)
	if len(said) > maxWords {
		return truncate.Start(said, maxWords) + "…"
	}
	return said
}
