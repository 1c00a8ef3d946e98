package toolprompt

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func namesOf(hits []Hit) []string {
	names := []string{}
	for _, h := range hits {
		names = append(names, h.Name)
	}
	return names
}

func TestSearch(t *testing.T) {
	index := NewIndex(smallCatalog())
	for _, r := range []struct {
		query string
		want  []string
	}{
		{"", []string{}},
		{"  ?! ", []string{}},
		{"zebra", []string{}},
		{"web", []string{"search_web"}},
		{"searchWeb", []string{"search_web"}},
		{"SEARCH the WEB", []string{"search_web"}},
		{"read_file", []string{"read_file"}},
		{"customers", []string{"crm_get_customer", "crm_delete-customer"}},
		{"custom", []string{"crm_get_customer", "crm_delete-customer"}},
		{"by the ", []string{}},
		{"custom ", []string{}},
		{"crm_get_customer", []string{"crm_get_customer", "crm_delete-customer"}},
		{"because", []string{"crm_delete-customer"}},
		{"max results", []string{"search_web"}},
		{"weather now", []string{"weather.now"}},
		{"get a customer by id", []string{"crm_get_customer", "crm_delete-customer"}},
	} {
		if diff := cmp.Diff(r.want, namesOf(index.Search(r.query, 10, nil))); diff != "" {
			t.Errorf("%q (-want +got):\n%s", r.query, diff)
		}
	}
}

func TestSearch_fullName(t *testing.T) {
	tools := []Tool{
		{Name: "get_user_profile_of_user", Title: "get user", Description: "get user get user get user"},
		{Name: "get_user", Description: "Other words, and many of them, so that what it is called counts for little."},
	}
	for _, query := range []string{"get_user", "getUser", "Get user"} {
		if got := namesOf(NewIndex(tools).Search(query, 1, nil)); !slices.Equal(got, []string{"get_user"}) {
			t.Errorf("%s: %v", query, got)
		}
	}
}

func TestSearch_equalScores(t *testing.T) {
	tools := []Tool{{Name: "b", Description: "same"}, {Name: "c", Description: "same"}, {Name: "a", Description: "same"}}
	hits := NewIndex(tools).Search("same", 2, nil)
	if got := namesOf(hits); !slices.Equal(got, []string{"a", "b"}) || hits[0].Index != 2 || hits[1].Index != 0 {
		t.Errorf("%v", hits)
	}
}

// TestSearch_hiddenTools compares with an index without the hidden tools.
func TestSearch_hiddenTools(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED with -short: one goroutine works here alone")
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 100 {
		var all, seen []Tool
		visible := map[int]bool{}
		for i, tool := range catalogOf(80) {
			tool.Description += fmt.Sprintf(" word%d", random.IntN(40))
			if all = append(all, tool); random.IntN(3) > 0 {
				visible[i] = true
				seen = append(seen, tool)
			}
		}
		whole, part := NewIndex(all), NewIndex(seen)
		for _, query := range []string{"customer", "cust", "w", "word1", "list all the invoices", "crm_get_customer", "delete files owner"} {
			for _, limit := range []int{1, 10, 1000} {
				want := part.Search(query, limit, nil)
				got := whole.Search(query, limit, func(i int) bool { return visible[i] })
				for i := range got {
					if got[i].Index = slices.IndexFunc(seen, func(t Tool) bool { return t.Name == got[i].Name }); got[i].Index < 0 {
						t.Errorf("%q finds the hidden tool %s", query, got[i].Name)
					}
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Fatalf("%q (-without +hidden):\n%s", query, diff)
				}
			}
		}
	}
}

func TestSearch_concurrent(t *testing.T) {
	index := NewIndex(catalogOf(200))
	want := index.Search("update the owner", 20, nil)
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			if diff := cmp.Diff(want, index.Search("update the owner", 20, nil)); diff != "" {
				t.Error(diff)
			}
		})
	}
	group.Wait()
}

func TestSearch_limits(t *testing.T) {
	index := NewIndex(catalogOf(1000))
	if n := len(index.Search("id", 1_000_000, nil)); n != maxHits {
		t.Errorf("%d tools are found", n)
	}
	for _, limit := range []int{0, -1} {
		if hits := index.Search("id", limit, nil); hits != nil {
			t.Errorf("%d tools of %d are found", len(hits), limit)
		}
	}
	long := strings.Repeat("nothing ", 1000) + "customer"
	if hits := index.Search(long, 10, nil); len(hits) > 0 {
		t.Errorf("words beyond the limit are read: %v", hits)
	}
}

func TestSplitWords(t *testing.T) {
	for text, want := range map[string]string{
		"":                      "",
		"get_customer":          "get customer",
		"getCustomer":           "get customer",
		"HTTPServer2":           "http server2",
		"S3Bucket":              "s3 bucket",
		"userIDs, URLs":         "user id url",
		"Ärger über Größe":      "ärger über größe",
		"e\u0301te\u0301":       "e\u0301te\u0301",
		"天気を":                   "天 気 を",
		"policies boxes buses":  "policy box buse",
		"class status analysis": "class status analysis",
		"matches dishes sizes":  "match dish siz",
		"it's 3.14":             "it s 3 14",
		strings.Repeat("x", 99): strings.Repeat("x", maxWord),
	} {
		var words []string
		splitWords(text, func(word string) bool {
			words = append(words, stem(word))
			return true
		})
		if got := strings.Join(words, " "); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
