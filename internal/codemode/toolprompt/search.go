package toolprompt

import (
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/mcpd/mcpd/internal/base/truncate"
)

const (
	// maxQuery bounds a query in bytes, and maxQueryWords in words.
	maxQuery      = 1 << 10
	maxQueryWords = 16
	// maxHits is the maximum number of hits.
	maxHits = 200
)

// The usual constants of BM25: the saturation of repeated words, and the penalty for longer
// texts.
const (
	saturation = 1.2
	lengthBias = 0.5
)

const (
	// prefixWeight is the weight of a word that only starts with the last word of the query.
	prefixWeight = 0.5
	// nameBonus ranks a tool first if the query is its full name.
	nameBonus = 1000
)

// Hit is a search result.
type Hit struct {
	// Index is the position in the indexed list.
	Index int
	Name  string
	// Score is comparable only for the same query and caller.
	Score float64
}

// Search returns the best matches of a query, at most limit and at most 200, sorted by score
// and then by name. A tool matches if it has one of the words. The last word also matches as a
// prefix, unless something follows it.
//
// Only tools that visible accepts are found, or all if it is nil; it is called once for each
// tool, with its position in the indexed list. Hidden tools have no influence: hits, order and
// scores are the same as if the index had been built without them.
func (x *Index) Search(query string, limit int, visible func(i int) bool) []Hit {
	words, begun := queryWords(query)
	if limit = min(limit, maxHits); limit <= 0 || len(words) == 0 {
		return nil
	}
	s := search{index: x, scores: make([]float64, len(x.names)), visible: make([]bool, len(x.names))}
	s.setVisible(visible)
	for i, word := range words {
		if stopWords[word] || slices.Contains(words[:i], word) {
			continue
		}
		if at, ok := slices.BinarySearch(x.terms, stem(word)); ok {
			s.addWord(x.postings[at])
		}
	}
	if begun {
		s.addPrefix(words[len(words)-1])
	}
	whole := strings.Join(words, " ")
	for i, name := range x.fullNames {
		if name == whole && s.visible[i] {
			s.scores[i] += nameBonus
		}
	}
	return s.top(limit)
}

// queryWords returns the words of a query, and whether the last one may be a prefix.
func queryWords(query string) (words []string, begun bool) {
	text := truncate.Start(query, maxQuery)
	splitWords(text, func(word string) bool {
		words = append(words, word)
		return len(words) < maxQueryWords
	})
	if len(words) == 0 {
		return nil, false
	}
	last, _ := utf8.DecodeLastRuneInString(text)
	return words, len(words) < maxQueryWords && isLetter(last)
}

type search struct {
	index   *Index
	scores  []float64
	visible []bool
	// count is the number of visible tools, and mean their mean length.
	count, mean float64
}

func (s *search) setVisible(visible func(i int) bool) {
	count, length := 0, 0
	for i := range s.visible {
		if s.visible[i] = visible == nil || visible(i); s.visible[i] {
			count++
			length += s.index.lengths[i]
		}
	}
	s.count = float64(count)
	s.mean = float64(length) / max(1, s.count)
}

// addWord adds to the scores of the tools with a word.
func (s *search) addWord(postings []posting) {
	having := 0
	for _, p := range postings {
		if s.visible[p.tool] {
			having++
		}
	}
	rarity := s.rarity(having)
	for _, p := range postings {
		if s.visible[p.tool] {
			s.scores[p.tool] += rarity * s.weight(p)
		}
	}
}

// addPrefix adds to the scores of the tools with words that start with a prefix. All such words
// count as one.
func (s *search) addPrefix(start string) {
	x := s.index
	weights := make([]int32, len(x.names))
	having := 0
	from, _ := slices.BinarySearch(x.terms, start)
	for i := from; i < len(x.terms) && strings.HasPrefix(x.terms[i], start); i++ {
		for _, p := range x.postings[i] {
			if !s.visible[p.tool] {
				continue
			}
			if weights[p.tool] == 0 {
				having++
			}
			weights[p.tool] += p.weight
		}
	}
	rarity := prefixWeight * s.rarity(having)
	for tool, weight := range weights {
		if weight > 0 {
			s.scores[tool] += rarity * s.weight(posting{int32(tool), weight})
		}
	}
}

// rarity is the weight of a word, by the number of visible tools that have it.
func (s *search) rarity(having int) float64 {
	n := float64(having)
	return math.Log(1 + (s.count-n+0.5)/(n+0.5))
}

// weight is the weight of a word in a tool.
func (s *search) weight(p posting) float64 {
	length := float64(s.index.lengths[p.tool]) / max(1, s.mean)
	w := float64(p.weight)
	return w * (saturation + 1) / (w + saturation*(1-lengthBias+lengthBias*length))
}

// top returns the tools with the highest scores.
func (s *search) top(limit int) []Hit {
	var hits []Hit
	for i, score := range s.scores {
		if score == 0 {
			continue
		}
		hit := Hit{i, s.index.names[i], score}
		if len(hits) == limit && compare(hit, hits[limit-1]) > 0 {
			continue
		}
		at, _ := slices.BinarySearchFunc(hits, hit, compare)
		if len(hits) == limit {
			hits = hits[:limit-1]
		}
		hits = slices.Insert(hits, at, hit)
	}
	return hits
}

// compare orders hits by score, name and position.
func compare(a, b Hit) int {
	switch {
	case a.Score > b.Score:
		return -1
	case a.Score < b.Score:
		return 1
	}
	if c := strings.Compare(a.Name, b.Name); c != 0 {
		return c
	}
	return a.Index - b.Index
}

// The weights of words by position.
const (
	inName        = 6
	inTitle       = 4
	inDescription = 2
	inMember      = 2 // the name of an argument
	inMemberText  = 1 // the description of an argument
)

// maxWords bounds the indexed words of one tool.
const maxWords = 4000

// Index finds tools by words. It is immutable and safe for concurrent use.
type Index struct {
	names []string
	// fullNames are the names split into words, and lengths the total weights of the tools.
	fullNames []string
	lengths   []int
	// terms are sorted; postings have the same order.
	terms    []string
	postings [][]posting
}

// posting is a tool with a word, and the total weight of the word.
type posting struct{ tool, weight int32 }

// NewIndex returns an index of the names, titles, descriptions and arguments of tools. It does
// not retain the tools.
func NewIndex(tools []Tool) *Index {
	b := indexBuilder{ids: map[string]int{}}
	for i := range tools {
		b.add(&tools[i])
	}
	order := make([]int, len(b.terms))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(x, y int) int { return strings.Compare(b.terms[x], b.terms[y]) })
	index := &Index{names: b.names, fullNames: b.fullNames, lengths: b.lengths, terms: make([]string, len(order)), postings: make([][]posting, len(order))}
	for i, at := range order {
		index.terms[i], index.postings[i] = b.terms[at], b.postings[at]
	}
	return index
}

type indexBuilder struct {
	names, fullNames []string
	lengths          []int
	ids              map[string]int
	terms            []string
	postings         [][]posting
	words            int // of the current tool
}

func (b *indexBuilder) add(t *Tool) {
	b.names = append(b.names, strings.Clone(t.Name))
	b.lengths = append(b.lengths, 0)
	b.words = 0
	var name []string
	splitWords(t.Name, func(word string) bool {
		name = append(name, word)
		b.word(word, inName)
		return len(name) < maxQueryWords
	})
	b.fullNames = append(b.fullNames, strings.Join(name, " "))
	if len(name) > 1 {
		b.word(strings.Join(name, ""), inDescription)
	}
	b.text(t.Title, inTitle)
	b.text(t.Description, inDescription)
	schema := parseNode(t.Input, promptLimits())
	b.members(&schema)
}

// members adds the names and descriptions of the members in a schema.
func (b *indexBuilder) members(n *node) {
	if b.words >= maxWords {
		return
	}
	if properties := n.memberOfKind(objectKind, "properties"); properties != nil {
		for _, name := range properties.names {
			b.text(name, inMember)
		}
	}
	b.text(n.stringMember("title"), inMemberText)
	b.text(n.stringMember("description"), inMemberText)
	for i := range n.items {
		b.members(&n.items[i])
	}
}

func (b *indexBuilder) text(text string, weight int32) {
	splitWords(text, func(word string) bool {
		b.word(word, weight)
		return b.words < maxWords
	})
}

func (b *indexBuilder) word(word string, weight int32) {
	if b.words >= maxWords || stopWords[word] {
		return
	}
	b.words++
	tool := len(b.names) - 1
	b.lengths[tool] += int(weight)
	word = stem(word)
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
