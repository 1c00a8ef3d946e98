package lockfile

import "slices"

// edit is a line of two texts that are compared: ' ' for one of both, '-' for one of the
// old text alone, '+' for one of the new.
type edit struct {
	mark byte
	line string
}

// place is a line in the old text and one in the new, by their numbers from 0.
type place struct{ old, new int }

// edits returns how to come from one text to another. It takes time n·log n of their
// lengths: texts meet at the lines that stand once in each of them, as many as are in the
// same order in both, and at what is equal around those.
func edits(old, new []string) []edit {
	var list []edit
	var done place
	for _, meet := range append(anchors(old, new), place{len(old), len(new)}) {
		if meet.old < done.old {
			continue // the texts have met there
		}
		from := meet
		for from.old > done.old && from.new > done.new && old[from.old-1] == new[from.new-1] {
			from.old--
			from.new--
		}
		list = appendEdits(list, '-', old[done.old:from.old])
		list = appendEdits(list, '+', new[done.new:from.new])
		for meet.old < len(old) && meet.new < len(new) && old[meet.old] == new[meet.new] {
			meet.old++
			meet.new++
		}
		list = appendEdits(list, ' ', old[from.old:meet.old])
		done = meet
	}
	return list
}

func appendEdits(list []edit, mark byte, lines []string) []edit {
	for _, line := range lines {
		list = append(list, edit{mark, line})
	}
	return list
}

// anchors returns the beginning of both texts, and the lines that stand once in each, as
// many of them as have the same order in both.
func anchors(old, new []string) []place {
	inOld, inNew := lonely(old), lonely(new)
	var shared []place
	for i, line := range old {
		if at, ok := inNew[line]; ok && at >= 0 && inOld[line] == i {
			shared = append(shared, place{i, at})
		}
	}
	return append([]place{{0, 0}}, rising(shared)...)
}

// lonely returns where each line stands, or -1 for one that stands there several times.
func lonely(lines []string) map[string]int {
	at := make(map[string]int, len(lines))
	for i, line := range lines {
		if _, again := at[line]; again {
			i = -1
		}
		at[line] = i
	}
	return at
}

// rising returns the longest list of places, which are sorted by their old line, whose new
// lines are in order, too.
func rising(places []place) []place {
	var ends []int                     // for each length, which place ends the list that ends lowest
	before := make([]int, len(places)) // for each place, which one is before it in its list
	for i, p := range places {
		n, _ := slices.BinarySearchFunc(ends, p.new, func(end, line int) int { return places[end].new - line })
		if n > 0 {
			before[i] = ends[n-1]
		}
		if n == len(ends) {
			ends = append(ends, i)
		} else {
			ends[n] = i
		}
	}
	if len(ends) == 0 {
		return nil
	}
	list := make([]place, len(ends))
	for n, i := len(ends)-1, ends[len(ends)-1]; n >= 0; n, i = n-1, before[i] {
		list[n] = places[i]
	}
	return list
}
