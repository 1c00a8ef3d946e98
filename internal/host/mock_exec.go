package host

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/mcpd/mcpd/internal/host/execs"
)

// execute answers for a program. What the broker would refuse is refused here, too.
func (m *Mocks) execute(p execs.Program, payload []byte) ([]byte, error) {
	arguments, err := p.Parse(payload)
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	mock, err := m.reply("exec."+p.Name, commandLine(arguments), `{ text = "" }`)
	if err != nil {
		return nil, err
	}
	var end struct {
		Code           int
		Stdout, Stderr string
	}
	if err := json.Unmarshal(mock.Body, &end); err != nil {
		return nil, fmt.Errorf("decode mock: %w", err)
	}
	return execs.Answer(end.Code, []byte(end.Stdout), []byte(end.Stderr)), nil
}

// commandLine writes arguments in one line, of which no two are alike: those that
// are empty, or hold blanks or what could not be told from quotes, are quoted.
func commandLine(arguments []string) string {
	words := make([]string, len(arguments))
	for i, a := range arguments {
		words[i] = a
		if quoted := strconv.Quote(a); a == "" || quoted != `"`+a+`"` || strings.ContainsAny(a, " '") {
			words[i] = quoted
		}
	}
	return strings.Join(words, " ")
}
