package lockfile

import "fmt"

// around is how many equal lines are shown before and behind those that differ.
const around = 3

// unified returns the lines of a unified diff of two texts, without its head.
func unified(old, new []string) []string {
	list := edits(old, new)
	var lines []string
	at := place{}
	for len(list) > 0 {
		from, to := hunk(list)
		at = at.behind(list[:from])
		end := at.behind(list[from:to])
		if from < to {
			lines = append(lines, fmt.Sprintf("@@ -%s +%s @@", span(at.old, end.old), span(at.new, end.new)))
		}
		for _, e := range list[from:to] {
			lines = append(lines, string(e.mark)+e.line)
		}
		at, list = end, list[to:]
	}
	return lines
}

// hunk returns the edits from the first that is a difference up to where more equal lines
// follow than are shown, with those that are shown around it. Without a difference, it is
// nothing at the end.
func hunk(list []edit) (from, to int) {
	first, last := -1, -1
	for i, e := range list {
		if e.mark != ' ' {
			if first < 0 {
				first = i
			}
			last = i
		} else if first >= 0 && i-last > 2*around {
			break
		}
	}
	if first < 0 {
		return len(list), len(list)
	}
	return max(0, first-around), min(len(list), last+1+around)
}

// behind returns the place behind edits that begin at p.
func (p place) behind(list []edit) place {
	for _, e := range list {
		if e.mark != '+' {
			p.old++
		}
		if e.mark != '-' {
			p.new++
		}
	}
	return p
}

// span returns the lines from one up to another as a hunk's head has them: the first,
// counted from 1, and how many there are; 0 is the line before the first.
func span(from, to int) string {
	if from == to {
		return fmt.Sprintf("%d,0", from)
	}
	return fmt.Sprintf("%d,%d", from+1, to-from)
}
