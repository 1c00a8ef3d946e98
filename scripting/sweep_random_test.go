package scripting

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/mcpd/mcpd/internal/base/cputime"
)

// TestNoCombinationStallsTheCompiler repeats and nests random pieces, in the
// way that found the exponential corners of both parsers.
func TestNoCombinationStallsTheCompiler(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	rounds := 500
	switch {
	case long():
		rounds = 3000
	case testing.Short() || raceDetector:
		rounds = 100
	}
	for range rounds {
		body := combination(random)
		for _, language := range []Language{JS, TS} {
			src := tool(body)
			src.Language = language
			began := cputime.Used()
			Compile(src)
			if took := cputime.Used() - began; took > compileBudget*slowdown {
				t.Errorf("%.200q took %v of CPU time", body, took)
			}
		}
	}
}

// combination returns a body of one random piece many times over, with
// brackets that mostly match.
func combination(random *rand.Rand) string {
	pick := func(n int) string {
		var b strings.Builder
		for range n {
			pieces := pieces()
			b.WriteString(pieces[random.IntN(len(pieces))])
		}
		return b.String()
	}
	before, piece, inner := pick(random.IntN(4)), pick(1+random.IntN(5)), pick(random.IntN(3))
	after := mirrored(piece)
	if random.IntN(3) == 0 {
		after += pick(1)
	}
	times := []int{8, 20, 25, 40, 60, 120, 500, 3000}[random.IntN(8)]
	body := before + strings.Repeat(piece, times) + inner + strings.Repeat(after, times)
	if random.IntN(4) == 0 {
		part := before + strings.Repeat(piece, 30) + inner + strings.Repeat(after, 30)
		body = strings.Repeat(part+[]string{";", "\n", ","}[random.IntN(3)], times)
	}
	return body[:min(len(body), MaxBody)]
}

// mirrored returns what closes the brackets that are open behind s.
func mirrored(s string) (closers string) {
	for i := len(s) - 1; i >= 0; i-- {
		switch c := s[i]; c {
		case '(', '[', '{':
			closers += string(closing(c))
		case ')', ']', '}':
			closers = closers[:max(0, len(closers)-1)]
		}
	}
	return closers
}

func pieces() []string {
	return strings.Split("(|)|[|]|{|}|a|b |1|=>|=|?|:|,|;|<|>|`|${|function |function*|async |await |yield |class |extends |new |if(a)|else |for("+
		"|of |in |let |const |var |return |try{|}catch{|}finally{|switch(a){|case |default:|...|!|-|+|*|/|&&|??|?.|.|typeof |as |is |keyof "+
		"|infer |type x=|interface |enum |namespace |abstract |declare |import |export |@|#a|super|this|'s'|/r/|\n|static |get |set |&|satisfies "+
		"|asserts |unique |readonly |public |using |0n|label:|break |throw |do |while(a)|with(a)|delete |void |=>{|({|})|([|])|<T>|(a)|(a:b)|:c|?(a)|=>a", "|")
}
