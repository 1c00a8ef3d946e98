package hclfile

// What a file may hold. HCL's parser recurses and joins strings pairwise, so
// every construct that nests or repeats there is bounded before it runs.
const (
	// maxFile is in bytes, raw bodies included.
	maxFile = 1 << 20
	// maxHCL is in bytes, without the text of literal heredocs.
	maxHCL = 256 << 10
	// maxNesting is how many brackets, quotes, heredocs and template sequences
	// may be open at once.
	maxNesting = 64
	// maxOperators is how many operators one expression may hold, counted
	// along the path from its root; a prefix operator or a question mark
	// counts as prefixWeight of them.
	maxOperators = 256
	prefixWeight = 4
	// maxPieces is how many lines, $ and % signs and sequences one template may hold.
	maxPieces = 500
	// maxItems is how many separators a file may hold, outside of literal heredocs.
	maxItems = 8192
	// maxWords and maxDefinition are how many tokens a file and one definition
	// at its top may hold, outside of literal heredocs; HCL's parser takes about
	// a microsecond for each. Long tokens count once for each wordBytes.
	maxWords      = 128_000
	maxDefinition = 12_000
	wordBytes     = 16
	// memberWords is what a member of an object in JSON counts, embeddedWords
	// a type or a template beside its text.
	memberWords   = 3
	embeddedWords = 4
	// maxSearched is how many bytes of a file with syntax errors are searched in
	// vain for the ends of heredocs and comments.
	maxSearched = 2 << 20
	// maxDefinitions is how many blocks may stand at the top of a file.
	maxDefinitions = 2000
	// maxNumber is the length of a number in bytes.
	maxNumber = 64
	// fewerDigits is what to do about a longer one.
	fewerDigits = "write fewer digits; a number keeps 17 of them at most"

	// maxValue is the size of one evaluated value.
	maxValue = 1 << 20
	// baseWork is the cost of all expressions of one file, beside workPerByte
	// for each byte of its HCL: the bytes they make and go through, nodeSize for
	// each value, and stepCost for each of their parts. A unit is some 3 ns.
	baseWork    = 5 << 19
	workPerByte = 8
	stepCost    = 128
	// nodeSize is what every value counts beside its text.
	nodeSize = 128
	// wideText is the cost of a byte of text that is not ASCII, which cty normalizes.
	wideText = 24
	// maxExponent bounds numbers to the range of a float64, in powers of two.
	maxExponent = 1100

	// maxTokens is how many structural characters JSON may hold.
	maxTokens = 100_000

	// maxDiagnostics is how many mistakes of one file are told, of the first
	// maxCollected that are found.
	maxDiagnostics = 200
	maxCollected   = 4 * maxDiagnostics
	// maxCompared is how many names the suggestions of one file may go through.
	maxCompared = 10_000
)
