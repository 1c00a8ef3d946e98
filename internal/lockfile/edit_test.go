package lockfile

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// applied returns both texts as edits have them.
func applied(list []edit) (old, new []string) {
	for _, e := range list {
		if e.mark != '+' {
			old = append(old, e.line)
		}
		if e.mark != '-' {
			new = append(new, e.line)
		}
	}
	return old, new
}

func TestEditsLeadFromOneTextToTheOther(t *testing.T) {
	for seed := range uint64(2000) {
		random := rand.New(rand.NewPCG(seed, 3))
		lines := func() (list []string) {
			for range random.IntN(30) {
				list = append(list, fmt.Sprint(random.IntN(1+random.IntN(40))))
			}
			return list
		}
		old, new := lines(), lines()
		gotOld, gotNew := applied(edits(old, new))
		if !slices.Equal(gotOld, old) || !slices.Equal(gotNew, new) {
			t.Fatalf("seed %d: from %v to %v, not from %v to %v", seed, gotOld, gotNew, old, new)
		}
		if shown := unified(old, new); slices.Equal(old, new) != (len(shown) == 0) {
			t.Fatalf("seed %d: %q", seed, shown)
		}
	}
}

func TestHunksShowThreeLinesAroundWhatDiffers(t *testing.T) {
	for _, row := range []struct{ name, old, new, want string }{
		{"nothing", "a b c", "a b c", ""},
		{"from nothing", "", "a b", "@@ -0,0 +1,2 @@|+a|+b"},
		{"to nothing", "a b", "", "@@ -1,2 +0,0 @@|-a|-b"},
		{"in the middle", "1 2 3 4 x 5 6 7 8", "1 2 3 4 y z 5 6 7 8", "@@ -2,7 +2,8 @@| 2| 3| 4|-x|+y|+z| 5| 6| 7"},
		{"near", "1 x 2 3 4 5 6 7 y 8", "1 2 3 4 5 6 7 8", "@@ -1,10 +1,8 @@| 1|-x| 2| 3| 4| 5| 6| 7|-y| 8"},
		{"apart", "1 x 2 3 4 5 6 7 8 y 9", "1 2 3 4 5 6 7 8 9", "@@ -1,5 +1,4 @@| 1|-x| 2| 3| 4|@@ -7,5 +6,4 @@| 6| 7| 8|-y| 9"},
		{"a line that was moved", "a b c d", "d a b c", "@@ -1,4 +1,4 @@|+d| a| b| c|-d"},
		{"lines of which there are many", "x x x x", "x x y x x", "@@ -1,4 +1,5 @@| x| x|+y| x| x"},
	} {
		t.Run(row.name, func(t *testing.T) {
			got := strings.Join(unified(strings.Fields(row.old), strings.Fields(row.new)), "|")
			if diff := cmp.Diff(row.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// TestTextsOfAnyShapeAreComparedInTime: none may take more than n·log n steps, which the
// size makes felt.
func TestTextsOfAnyShapeAreComparedInTime(t *testing.T) {
	const n = 100_000
	numbers := func(of func(i int) int) []string {
		list := make([]string, n)
		for i := range list {
			list[i] = fmt.Sprint(of(i))
		}
		return list
	}
	up := numbers(func(i int) int { return i })
	for _, row := range []struct {
		name     string
		old, new []string
	}{
		{"the same", up, up},
		{"the other way round", up, numbers(func(i int) int { return n - i })},
		{"one line again and again", numbers(func(int) int { return 1 }), numbers(func(i int) int { return i % 2 })},
		{"nothing in common", up, numbers(func(i int) int { return i + n })},
		{"every other one", up, numbers(func(i int) int { return i &^ 1 })},
		{"mixed", up, numbers(func(i int) int { return i * 7919 % n })},
	} {
		t.Run(row.name, func(t *testing.T) {
			old, new := applied(edits(row.old, row.new))
			if !slices.Equal(old, row.old) || !slices.Equal(new, row.new) {
				t.Error("the edits are of other texts")
			}
			unified(row.old, row.new)
		})
	}
}
