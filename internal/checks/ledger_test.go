package checks_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// ledgerRevisions are the revisions of docs/project/must-ledger.md in order.
var ledgerRevisions = []string{"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"}

// ledgerPage is the section of a page in the ledger.
type ledgerPage struct {
	name      string // the revision, a space and the page
	sentences int
	rows      []ledgerRow
}

// ledgerRow names the proof for some sentences of a page.
type ledgerRow struct {
	line      int
	sentences []int
	text      string
	proof     string
}

var (
	ledgerHeading = regexp.MustCompile(`^### (\d{4}-\d\d-\d\d [\w/-]+)$`)
	ledgerCount   = regexp.MustCompile(`^(\d+) sentences?\.$`)
	pointer       = regexp.MustCompile(`^as (\d{4}-\d\d-\d\d [\w/-]+) (\d+)$`)
	goTest        = regexp.MustCompile("^`([\\w/]+)\\.(Test\\w+)`$")
	scenarioFile  = regexp.MustCompile("^`(testdata/[\\w/]+\\.txtar)`$")
	suiteScenario = regexp.MustCompile(`^conformance: [a-z][a-z0-9-]+$`)
)

func TestEverySentenceOfTheLedgerIsListedOnce(t *testing.T) {
	pages, index := readLedger(t)
	for _, p := range pages {
		if index[p.name] != p.sentences {
			t.Errorf("%s has %d sentences, but %d in the table at the top", p.name, p.sentences, index[p.name])
		}
		delete(index, p.name)
		listed := map[int]string{}
		for _, r := range p.rows {
			for _, n := range r.sentences {
				if before, twice := listed[n]; n < 1 || n > p.sentences || twice && !strings.HasPrefix(r.text, "… ") {
					t.Errorf("docs/project/must-ledger.md:%d: sentence %d of %d is missing or a duplicate, after %q", r.line, n, p.sentences, before)
				}
				listed[n] = r.text
			}
		}
		if len(listed) != p.sentences || p.sentences == 0 {
			t.Errorf("%s: %d of %d sentences are listed", p.name, len(listed), p.sentences)
		}
	}
	for name := range index {
		t.Errorf("the table at the top names %s, which has no section", name)
	}
}

func TestEveryProofOfTheLedgerExists(t *testing.T) {
	pages, _ := readLedger(t)
	tests := testFunctions(t)
	proofs := map[string]string{} // by page and number
	for _, p := range pages {
		for _, r := range p.rows {
			if problem := r.problem(tests, proofs); problem != "" {
				t.Errorf("docs/project/must-ledger.md:%d: %s", r.line, problem)
			}
			for _, n := range r.sentences {
				proofs[fmt.Sprintf("%s %d", p.name, n)] = r.proof
			}
		}
	}
}

// TestWhatTheLedgerLeavesOpen checks that the top of the ledger states how much of the
// specification is open, and why.
func TestWhatTheLedgerLeavesOpen(t *testing.T) {
	pages, _ := readLedger(t)
	sentences, reasons := 0, map[string]int{}
	for _, p := range pages {
		for _, r := range p.rows {
			if reason, open := strings.CutPrefix(r.proof, "open: "); open {
				sentences += len(r.sentences)
				reasons[reason] += len(r.sentences)
			}
		}
	}
	text, err := os.ReadFile("docs/project/must-ledger.md")
	if err != nil {
		t.Fatal(err)
	}
	told := fmt.Sprintf("**%d are open**", sentences)
	t.Log("OPEN: " + told)
	if !strings.Contains(string(text), told) {
		t.Errorf("the top of the page must say %s", told)
	}
	for reason, n := range reasons {
		told := fmt.Sprintf("%d: %s", n, reason)
		t.Log("OPEN: " + told)
		if !strings.Contains(string(text), " "+told) {
			t.Errorf("the top of the page must say %q", told)
		}
	}
}

// problem returns what is wrong with the proof of a row, given the proofs of earlier
// rows.
func (r *ledgerRow) problem(tests map[string]bool, proofs map[string]string) string {
	for _, kind := range []string{"does not apply: ", "open: "} {
		if reason, ok := strings.CutPrefix(r.proof, kind); ok {
			if len(reason) < 10 {
				return "the reason is missing"
			}
			return ""
		}
	}
	if to := pointer.FindStringSubmatch(r.proof); to != nil {
		if proof, ok := proofs[to[1]+" "+to[2]]; !ok || strings.HasPrefix(proof, "as ") {
			return "there is no proof at " + to[1] + " " + to[2]
		}
		return ""
	}
	for _, proof := range strings.Split(r.proof, ", ") {
		if problem := missingTest(proof, tests); problem != "" {
			return problem
		}
	}
	return ""
}

// missingTest returns why a text does not name a test, or "".
func missingTest(proof string, tests map[string]bool) string {
	if name := goTest.FindStringSubmatch(proof); name != nil {
		if !tests[name[1]+"."+name[2]] {
			return "there is no test " + proof
		}
		return ""
	}
	if name := scenarioFile.FindStringSubmatch(proof); name != nil {
		if _, err := os.Stat(name[1]); err != nil {
			return "there is no scenario " + proof
		}
		return ""
	}
	if !suiteScenario.MatchString(proof) {
		return fmt.Sprintf("%q is neither a test, nor a pointer, nor a reason", proof)
	}
	return ""
}

// readLedger returns the sections of the ledger and the counts of its first table by
// revision and page.
func readLedger(t *testing.T) (pages []ledgerPage, index map[string]int) {
	t.Helper()
	text, err := os.ReadFile("docs/project/must-ledger.md")
	if err != nil {
		t.Fatal(err)
	}
	index = map[string]int{}
	line := 0
	for content := range strings.Lines(string(text)) {
		line++
		content = strings.TrimSpace(content)
		if heading := ledgerHeading.FindStringSubmatch(content); heading != nil {
			pages = append(pages, ledgerPage{name: heading[1]})
			continue
		}
		if len(pages) == 0 {
			readIndex(t, content, index)
			continue
		}
		p := &pages[len(pages)-1]
		if count := ledgerCount.FindStringSubmatch(content); count != nil {
			p.sentences = number(t, count[1])
		}
		if cells := cellsOf(content); len(cells) == 3 && cells[1] != "sentence" && !strings.HasPrefix(cells[0], "-") {
			p.rows = append(p.rows, ledgerRow{line: line, sentences: numbers(t, cells[0]), text: cells[1], proof: cells[2]})
		}
	}
	for _, revision := range ledgerRevisions {
		if index[revision] != 0 {
			t.Errorf("the pages of %s do not add up: difference %d", revision, index[revision])
		}
		delete(index, revision)
	}
	return pages, index
}

// readIndex adds a row of the first table to the index. The totals row is subtracted
// from the count of each revision.
func readIndex(t *testing.T, line string, index map[string]int) {
	t.Helper()
	cells := cellsOf(line)
	if len(cells) != 1+len(ledgerRevisions) || cells[0] == "page" || strings.HasPrefix(cells[0], "-") {
		return
	}
	for i, revision := range ledgerRevisions {
		if cells[1+i] == "" {
			continue
		}
		n := number(t, cells[1+i])
		if cells[0] == "all" {
			index[revision] -= n
			continue
		}
		index[revision+" "+cells[0]] = n
		index[revision] += n
	}
}

// cellsOf returns the cells of a table row, or nil for another line.
func cellsOf(line string) []string {
	inner, ok := strings.CutPrefix(line, "|")
	if inner, closed := strings.CutSuffix(inner, "|"); ok && closed {
		cells := strings.Split(inner, "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		return cells
	}
	return nil
}

// numbers parses "1, 3–5".
func numbers(t *testing.T, text string) (all []int) {
	t.Helper()
	for _, part := range strings.Split(text, ", ") {
		from, to, isRange := strings.Cut(part, "–")
		if !isRange {
			to = from
		}
		for n := number(t, from); n <= number(t, to); n++ {
			all = append(all, n)
		}
	}
	return all
}

func number(t *testing.T, text string) int {
	t.Helper()
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("docs/project/must-ledger.md: %q is not a number", text)
	}
	return n
}

// testFunctions returns all tests of the repository as "directory.TestName".
func testFunctions(t *testing.T) map[string]bool {
	t.Helper()
	tests := map[string]bool{}
	for _, file := range goFiles(t) {
		if !isTest(file) {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range parsed.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && strings.HasPrefix(f.Name.Name, "Test") {
				tests[path.Dir(file)+"."+f.Name.Name] = true
			}
		}
	}
	return tests
}
