package audit

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
)

// Unanswered calls visit for the last n records of approvals that were asked and not
// answered since, the oldest first. Those that were asked a moment ago are among them.
// It takes the memory of those that nobody answers.
func Unanswered(path string, n int, visit func(*Line) error) (err error) {
	f, err := openFiles(path)
	if err != nil {
		return fmt.Errorf("read the audit log: %w", err)
	}
	defer func() { err = errors.Join(err, f.close()) }()
	open := map[string]*Line{} // by the root id of the call
	if err := f.each(func(_ string, _ bool, file *os.File) error {
		_, err := readLines(file, func(l *Line) error {
			switch root := l.text("root_id"); l.text("approval", "state") {
			case ApprovalAsked:
				if l.text("approval", "why") != AskedAgain {
					open[root] = l
				}
			case ApprovalGiven, ApprovalRefused, ApprovalUnasked:
				delete(open, root)
			}
			return nil
		})
		return err
	}); err != nil {
		return err
	}
	last := slices.SortedFunc(maps.Values(open), func(a, b *Line) int { return cmp.Compare(a.Seq, b.Seq) })
	for _, line := range last[max(0, len(last)-n):] {
		if err := visit(line); err != nil {
			return err
		}
	}
	return nil
}
