package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcpd/mcpd/internal/base/postgrestest"
	"github.com/mcpd/mcpd/internal/ops/control"
)

// token runs mcpd token in the scene, and requires an exit code and a match on both
// streams. It returns standard output.
func (s *userScene) token(t *testing.T, code int, stdout, stderr string, args ...string) string {
	t.Helper()
	got, out, log := inProcess(t, s.dir, append(os.Environ(), "XDG_STATE_HOME="+s.state), append([]string{"token"}, args...)...)
	for want, text := range map[string]string{stdout: out, stderr: log} {
		if !regexp.MustCompile(`\A(?:` + want + `)\z`).MatchString(text) {
			t.Errorf("mcpd token %v prints %q, want %q", args, text, want)
		}
	}
	if got != code {
		t.Errorf("mcpd token %v exits with %d, want %d: %s", args, got, code, log)
	}
	s.addOutput("mcpd token", out+log)
	return out
}

// listed requires exactly one token and returns its row.
func (s *userScene) listed(t *testing.T) control.Token {
	t.Helper()
	var rows []control.Token
	if err := json.Unmarshal([]byte(s.token(t, 0, `(?s).+`, ``, "list", "--json")), &rows); err != nil || len(rows) != 1 {
		t.Fatalf("listed are %+v, %v", rows, err)
	}
	return rows[0]
}

const (
	opensPages = `{"elicitation":{"url":{}}}`
	noToken    = `mcpd: no matching token at .+; mcpd token list shows all tokens\n`
	noneListed = `SECRET +PRINCIPAL +KIND +SINCE +RENEWED +ISSUER\n`
)

func (s *userScene) wantPages(t *testing.T, answer string, pages, want int) {
	t.Helper()
	if pages != want || !strings.Contains(answer, `known: true`) {
		t.Errorf("after %d pages, want %d, the result is %s", pages, want, answer)
	}
}

// Tokens of removed secrets are listed too.
func TestToken_withoutServer(t *testing.T) {
	t.Parallel()
	s := newUserScene(t)
	s.token(t, 0, noneListed, ``, "list")
	s.token(t, 1, ``, noToken, "drop", "--secret", "mine")
	if files, _ := os.ReadDir(s.state); len(files) != 0 {
		t.Errorf("mcpd token created %v", files)
	}
	answer, pages := s.converse(t, opensPages)
	s.wantPages(t, answer, pages, 1)
	row := s.listed(t)
	age := time.Since(row.Given)
	if row.Secret != "mine" || row.Kind != "local" || row.Principal == "" || len(row.Definition) != 16 || age < 0 || age > time.Hour || row.Until.Sub(row.Renewed) != 90*24*time.Hour {
		t.Errorf("listed is %+v", row)
	}
	for _, other := range [][]string{{"--secret", "yours"}, {"--principal", "nobody"}, {"--secret", "mine", "--principal", "nobody"}, {"--principal", row.Principal, "--kind", "key"}, {"--secret", "mine", "--issuer", "x"}} {
		s.token(t, 1, ``, noToken, append([]string{"drop"}, other...)...)
	}
	answer, pages = s.converse(t, opensPages)
	s.wantPages(t, answer, pages, 0)

	// The definition is removed; the row stays.
	config := filepath.Join(s.dir, "mcpd.hcl")
	text, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(config, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s.token(t, 0, noneListed+`mine +\S+ +local +\d{4}-\d\d-\d\d +\d{4}-\d\d-\d\d +\n`, ``, "list")
	s.token(t, 0, `dropped mine of \S+ \(local\)\n`, ``, "drop", "--principal", row.Principal, "--secret", "mine")
	s.token(t, 1, ``, noToken, "drop", "--principal", row.Principal)
	s.token(t, 0, `\[\]\n`, ``, "list", "--json")
	if err := os.WriteFile(config, text, 0o600); err != nil {
		t.Fatal(err)
	}
	answer, pages = s.converse(t, opensPages)
	s.wantPages(t, answer, pages, 1)
	if found := s.leaks(); len(found) > 0 {
		t.Errorf("tokens leaked:\n%s", strings.Join(found, "\n"))
	}
}

// audited enables the audit log of the scene and returns its path.
func (s *userScene) audited(t *testing.T) (path string) {
	t.Helper()
	config := filepath.Join(s.dir, "mcpd.hcl")
	text, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(config, append(text, "audit {\n  path = \"audit.jsonl\"\n  mode = \"strict\"\n}\n"...), 0o600); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(s.dir, "audit.jsonl")
}

// wantEvents requires exactly these token events of a principal in an audit log.
func (s *userScene) wantEvents(t *testing.T, path, principal string, want ...string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	s.addOutput("the audit log", string(text))
	var got []string
	for _, found := range regexp.MustCompile(`"event.name":"(token\.[a-z]+)","attributes":(\{[^}]*\})`).FindAllStringSubmatch(string(text), -1) {
		got = append(got, found[1])
		if about := `{"issuer":"","kind":"local","name":"mine","principal":"` + principal + `"}`; found[2] != about {
			t.Errorf("%s is about %s, want %s", found[1], found[2], about)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("audit events: %q, want %q", got, want)
	}
	if found := s.leaks(); len(found) > 0 {
		t.Errorf("tokens leaked:\n%s", strings.Join(found, "\n"))
	}
}

// The server drops the token from memory and from the file, and the audit log records
// each stored and dropped token.
func TestTokenDrop_runningServer(t *testing.T) {
	t.Parallel()
	s := newUserScene(t)
	log, principal := s.audited(t), ""
	s.talk(t, func(send func(string), hear func() (string, bool)) {
		s.greet(send, opensPages)
		answer, pages := s.call(t, send, hear, 2)
		s.wantPages(t, answer, pages, 1)
		answer, pages = s.call(t, send, hear, 3)
		s.wantPages(t, answer, pages, 0)
		row := s.listed(t)
		s.token(t, 1, ``, noToken, "drop", "--principal", "nobody")
		s.token(t, 1, ``, `mcpd: open the state store: (?s).+; if a running server uses the file, name its socket with --control\n`, "list", "--control", "off")
		s.token(t, 0, `dropped mine of \S+ \(local\)\n`, ``, "drop", "--principal", row.Principal)
		s.token(t, 1, `\[\]\n`, noToken, "drop", "--secret", "mine", "--json")
		s.token(t, 0, noneListed, ``, "list")
		answer, pages = s.call(t, send, hear, 4)
		s.wantPages(t, answer, pages, 1)
		principal = s.listed(t).Principal
	})
	s.wantEvents(t, log, principal, "token.joined", "token.dropped", "token.joined")
	if s.tokens.Load() != 2 {
		t.Errorf("%d tokens issued, want 2", s.tokens.Load())
	}
}

// Two servers share a database. The verbs find it in the state block, and both servers forget the token.
func TestToken_database(t *testing.T) {
	t.Parallel()
	database := postgrestest.Start(t, os.Getenv("MCPD_NEED_POSTGRES"))
	s := newUserScene(t)
	url := database.URL("postgres", "")
	config := filepath.Join(s.dir, "mcpd.hcl")
	text, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	block := fmt.Sprintf(`
server { name = "shop" }
state {
  url = secret.database
  key = secret.key
}
secret "database" { file = %q }
secret "key" { file = %q }
`, filepath.Join(s.dir, "database.txt"), filepath.Join(s.dir, "key.txt"))
	for name, text := range map[string]string{config: string(text) + block, filepath.Join(s.dir, "database.txt"): url, filepath.Join(s.dir, "key.txt"): "a key of many random characters"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const offline = "--control=off"
	s.token(t, 1, ``, `mcpd: open the state store: .+schema mcpd has no state of this version .+\n`, "list", offline)
	s.talk(t, func(sendA func(string), hearA func() (string, bool)) {
		s.greet(sendA, opensPages)
		answer, pages := s.call(t, sendA, hearA, 2)
		s.wantPages(t, answer, pages, 1)
		s.talk(t, func(sendB func(string), hearB func() (string, bool)) {
			s.greet(sendB, opensPages)
			answer, pages := s.call(t, sendB, hearB, 2)
			s.wantPages(t, answer, pages, 0)
			s.token(t, 0, `SECRET(?s).+mine.+`, ``, "list", offline)
			s.token(t, 1, ``, `mcpd: .*not encrypted.*\n|mcpd: .*another key.*\n`, "list", offline, "--state", url)
			s.token(t, 0, `dropped mine of \S+ \(local\)\n`, ``, "drop", "--secret", "mine", offline)
			// Server A listens for the return of users. It asks again once the message has arrived.
			for id := 3; pages == 0 && strings.Contains(answer, "known: true") && !t.Failed(); id++ {
				answer, pages = s.call(t, sendA, hearA, id)
			}
			s.wantPages(t, answer, pages, 1)
			// Server B has no token in memory any more, and reads that of the new consent.
			answer, pages = s.call(t, sendB, hearB, 3)
			s.wantPages(t, answer, pages, 0)
		})
		if s.tokens.Load() != 2 {
			t.Errorf("%d tokens issued, want 2", s.tokens.Load())
		}
	})
	s.token(t, 0, `dropped mine of \S+ \(local\)\n`, ``, "drop", "--secret", "mine")
}
