package diag

import (
	"fmt"
	"strings"
)

// OncePerPlace joins diagnostics of one kind that point at the same place, as
// when a policy is wrong for each of many tools: the first is kept, and its
// detail counts the others.
func (l List) OncePerPlace() List {
	type place struct {
		where Range
		code  string
	}
	var joined List
	first, others := map[place]int{}, map[place]int{}
	for _, d := range l {
		at := place{d.Range, d.Code}
		if _, told := first[at]; told {
			others[at]++
			continue
		}
		first[at] = len(joined)
		joined = append(joined, d)
	}
	for at, n := range others {
		d := &joined[first[at]]
		d.Detail = strings.TrimPrefix(fmt.Sprintf("%s (and the same for %d more)", d.Detail, n), " ")
	}
	return joined
}
