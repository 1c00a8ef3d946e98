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
	// maxNumber is the length of a number in bytes.
	maxNumber = 64

	// maxValue is the size of one evaluated value.
	maxValue = 1 << 20
	// maxWork is the cost of all expressions of one file: the bytes they make
	// and go through, and stepCost for each of their parts.
	maxWork  = 64 << 20
	stepCost = 192
	// maxExponent bounds numbers to the range of a float64, in powers of two.
	maxExponent = 1100

	// maxTokens is how many structural characters JSON may hold.
	maxTokens = 100_000

	// maxDiagnostics is how many mistakes of one file are told, of the first
	// maxCollected that are found.
	maxDiagnostics = 200
	maxCollected   = 10 * maxDiagnostics
)
