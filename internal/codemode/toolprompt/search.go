package toolprompt

import (
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/mcpd/mcpd/internal/base/truncate"
)

const (
	// maxQuery bounds the bytes of a query that are read, and maxQueryWords its words.
	maxQuery      = 1 << 10
	maxQueryWords = 16
	// maxHits is the most tools that are found.
	maxHits = 200
)

// The constants of BM25, the usual ones: how soon a word that is repeated says nothing
// new, and how much longer texts count for less.
const (
	saturation = 1.2
	lengthBias = 0.5
)

const (
	// begunShare is what a word counts that only begins as the query's last does.
	prefixWeight = 0.5
	// nameBonus puts the tool first whose whole name the query is.
	nameBonus = 1000
)

// Hit is a tool that was found.
type Hit struct {
	// Index is its place in the list that the index was made of.
	Index int
	Name  string
	// Score says how well it fits, for the same query and the same caller only.
	Score float64
}

// Search returns the tools that fit a query best, at most limit and 200 of them, those
// that fit equally in the order of their names. A tool fits that has one of the words;
// of the last word its beginning will do, unless something stands behind it.
//
// Only tools that visible reports as seen are found, all where it is nil; it is asked
// for each tool once, by its place in the list that the index was made of. The others
// have no part in anything: which tools are found, how many, in which order and with
// which scores is the same as if the index had been made without them.
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

// queryWords returns the words of a query, and whether the last of them may be the
// beginning of one.
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
	// count is how many tools are seen, and mean their mean length.
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

// word adds to the scores of the tools that have a word.
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

// beginning adds to the scores of the tools that have words which begin so. All such
// words count as one.
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

// rarity is what a word tells that so many of the seen tools have.
func (s *search) rarity(having int) float64 {
	n := float64(having)
	return math.Log(1 + (s.count-n+0.5)/(n+0.5))
}

// weight is how much a word says of a tool.
func (s *search) weight(p posting) float64 {
	length := float64(s.index.lengths[p.tool]) / max(1, s.mean)
	w := float64(p.weight)
	return w * (saturation + 1) / (w + saturation*(1-lengthBias+lengthBias*length))
}

// best returns the tools of the highest scores.
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

// compare orders hits: the one that fits better first, then by name and place.
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
	fullNames []string
	lengths   []int
	// terms are in order, and postings beside them.
	terms    []string
	postings [][]posting
}

// posting says that a tool has a word, and with what weight in all.
type posting struct{ tool, weight int32 }

// NewIndex returns an index of the names, titles, descriptions and arguments of tools.
// It keeps none of the tools.
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
	words            int // of the tool that is being added
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
	schema := parseNode(t.Input)
	b.members(&schema)
}

// members adds the names of the members in a schema, and what is told of them.
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
