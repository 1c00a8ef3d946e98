package toolprompt

import (
	"slices"
	"strings"
)

// The weights of words by where they stand.
const (
	inName        = 6
	inTitle       = 4
	inDescription = 2
	inMember      = 2 // the name of a member of the arguments
	inMemberText  = 1 // what is told of one
)

// maxWords bounds how many words of one tool are found.
const maxWords = 4000

// Index finds tools by words. It is immutable, and many may search it at once.
type Index struct {
	names []string
	// whole are the names in words, and lengths the weights of all words.
	whole   []string
	lengths []int
	// terms are in order, and postings beside them.
	terms    []string
	postings [][]posting
}

// posting says that a tool has a word, and with what weight in all.
type posting struct{ tool, weight int32 }

// NewIndex returns an index of the names, titles, descriptions and arguments of tools.
// It keeps none of the tools.
func NewIndex(tools []Tool) *Index {
	b := builder{ids: map[string]int{}}
	for i := range tools {
		b.add(&tools[i])
	}
	order := make([]int, len(b.terms))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(x, y int) int { return strings.Compare(b.terms[x], b.terms[y]) })
	index := &Index{names: b.names, whole: b.whole, lengths: b.lengths, terms: make([]string, len(order)), postings: make([][]posting, len(order))}
	for i, at := range order {
		index.terms[i], index.postings[i] = b.terms[at], b.postings[at]
	}
	return index
}

// builder makes an index.
type builder struct {
	names, whole []string
	lengths      []int
	ids          map[string]int
	terms        []string
	postings     [][]posting
	words        int // of the tool that is being added
}

func (b *builder) add(t *Tool) {
	b.names = append(b.names, strings.Clone(t.Name))
	b.lengths = append(b.lengths, 0)
	b.words = 0
	var name []string
	splitWords(t.Name, func(word string) bool {
		name = append(name, word)
		b.word(word, inName)
		return len(name) < maxQueryWords
	})
	b.whole = append(b.whole, strings.Join(name, " "))
	if len(name) > 1 {
		b.word(strings.Join(name, ""), inDescription)
	}
	b.text(t.Title, inTitle)
	b.text(t.Description, inDescription)
	schema := read(t.Input)
	b.members(&schema)
}

// members adds the names of the members in a schema, and what is told of them.
func (b *builder) members(n *node) {
	if b.words >= maxWords {
		return
	}
	if properties := n.of(objectKind, "properties"); properties != nil {
		for _, name := range properties.names {
			b.text(name, inMember)
		}
	}
	b.text(n.say("title"), inMemberText)
	b.text(n.say("description"), inMemberText)
	for i := range n.items {
		b.members(&n.items[i])
	}
}

func (b *builder) text(text string, weight int32) {
	splitWords(text, func(word string) bool {
		b.word(word, weight)
		return b.words < maxWords
	})
}

// word says that the last tool has a word.
func (b *builder) word(word string, weight int32) {
	if b.words >= maxWords || common[word] {
		return
	}
	b.words++
	tool := len(b.names) - 1
	b.lengths[tool] += int(weight)
	word = fold(word)
	id, known := b.ids[word]
	if !known {
		id = len(b.terms)
		word = strings.Clone(word)
		b.ids[word] = id
		b.terms = append(b.terms, word)
		b.postings = append(b.postings, nil)
	}
	list := b.postings[id]
	if n := len(list); n > 0 && list[n-1].tool == int32(tool) {
		list[n-1].weight += weight
		return
	}
	b.postings[id] = append(list, posting{int32(tool), weight})
}
