package codemode

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func TestThePromptOfASmallCatalogue(t *testing.T) {
	holdGolden(t, "small.md", Prompt(smallCatalogue(), Options{Search: true, Limits: Limits{Time: 30 * time.Second, Calls: 100, Running: 8, Output: 256 << 10, Memory: 128 << 20}}))
	if m := mistakes(Declare(smallCatalogue(), Full)); m != "" {
		t.Error(m)
	}
}

// TestABudgetTakesDetailFromAllToolsAlike pins what is left at each detail.
func TestABudgetTakesDetailFromAllToolsAlike(t *testing.T) {
	catalogue := smallCatalogue()
	for d, name := range []string{"full.md", "without_constraints.md", "without_members.md", "without_results.md", "first_sentences.md", "without_arguments.md", "names_only.md"} {
		want := prompt(catalogue, Detail(d), Options{Search: true})
		if Detail(d) > Full {
			holdGolden(t, name, want)
		}
		if got := Prompt(catalogue, Options{Search: true, Budget: Tokens(want)}); got != want {
			t.Errorf("a budget of just the tokens of %s gives another:\n%s", name, got)
		}
		if got, next := Prompt(catalogue, Options{Search: true, Budget: Tokens(want) - 1}), prompt(catalogue, min(Detail(d)+1, NamesOnly), Options{Search: true}); got != next {
			t.Errorf("a budget of one token less than %s does not give the next:\n%s", name, got)
		}
	}
}

func TestAPromptNamesNoToolsThatSearchWhereThereAreNone(t *testing.T) {
	short := Prompt(smallCatalogue(), Options{Budget: 1})
	if !strings.Contains(short, "this leaves out everything but the names.\n") || strings.Contains(short, "describe_tool") || strings.Contains(short, "search_tools") {
		t.Errorf("the prompt is\n%s", short)
	}
}

func TestNoBudgetTakesANameAway(t *testing.T) {
	tools := append(catalogueOf(100), hostileCatalogue()...)
	for _, budget := range []int{1, 1500, 5000, 9000, 16_000, 22_000, 30_000} {
		text := Prompt(tools, Options{Budget: budget})
		for _, e := range arrange(tools) {
			for i := range e.tools {
				name := e.call(i)
				if e.members != nil {
					name = key(e.members[i])
				}
				if !strings.Contains(text, name) {
					t.Errorf("in a budget of %d, %s is gone", budget, e.call(i))
				}
			}
		}
	}
}

// TestTheSentencesOfTheRFCStandInEveryPrompt is about RFC 003, "System Prompt for Tool
// Availability".
func TestTheSentencesOfTheRFCStandInEveryPrompt(t *testing.T) {
	for name, text := range map[string]string{"none": Prompt(nil, Options{}), "small": Prompt(smallCatalogue(), Options{}), "names": Prompt(smallCatalogue(), Options{Budget: 1})} {
		rest := text
		for _, sentence := range []string{
			"You are writing JavaScript code that will be executed.\n",
			"The following tools are pre-imported and available for use:\n\n",
			"\nIMPORTANT: Do NOT write import statements. All tools are already available.\n",
			"Simply call the functions directly by name.\n\n",
			"Example:\nconst results = await search_web({ query: \"python async\", max_results: 5 });\nconst content = await read_file({ path: \"/workspace/config.json\" });\n",
		} {
			var found bool
			if _, rest, found = strings.Cut(rest, sentence); !found {
				t.Errorf("%s: there is no %q, or not in its place", name, sentence)
			}
		}
	}
}

func TestTheOrderOfToolsChangesNothing(t *testing.T) {
	tools := slices.DeleteFunc(append(hostileCatalogue(), catalogueOf(30)...), func(t Tool) bool { return t.Group == "read_it" })
	want := Prompt(tools, Options{})
	slices.Reverse(tools)
	if got := Prompt(tools, Options{}); got != want {
		t.Errorf("the prompt of the same tools is another:\n%s", got)
	}
}

func TestOneToolIsDeclaredAsInThePrompt(t *testing.T) {
	text := Prompt(smallCatalogue(), Options{})
	for _, tool := range smallCatalogue() {
		declared := Describe(tool)
		if tool.Group == "" && tool.Name != "weather.now" && !strings.Contains(text, declared) {
			t.Errorf("%s is declared as\n%s", tool.Name, declared)
		}
		if m := mistakes(declared); m != "" {
			t.Error(m)
		}
	}
}
