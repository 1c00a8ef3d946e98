package scripting

import (
	"math/big"
	"strings"

	"github.com/dop251/goja"
)

// bigints says where in decoded JSON a number is a BigInt. Nil is nowhere.
type bigints struct {
	here bool
	// members are those within members of an object; "*" is for those of every other
	// member, and for the items of an array.
	members map[string]*bigints
}

// bigintsAt returns the places that pointers name (see [Source.BigInts]).
func bigintsAt(pointers []string) *bigints {
	if len(pointers) == 0 {
		return nil
	}
	root := &bigints{}
	for _, pointer := range pointers {
		at := root
		for _, name := range strings.Split(pointer, "/")[1:] {
			inner := at.members[name]
			if inner == nil {
				if at.members == nil {
					at.members = map[string]*bigints{}
				}
				inner = &bigints{}
				at.members[name] = inner
			}
			at = inner
		}
		at.here = true
	}
	return root
}

// member returns the places within a member.
func (b *bigints) member(name string) *bigints {
	if b == nil {
		return nil
	}
	if inner, ok := b.members[name]; ok {
		return inner
	}
	return b.members["*"]
}

// item returns the places within the items.
func (b *bigints) item() *bigints {
	if b == nil {
		return nil
	}
	return b.members["*"]
}

// maxBigInt is how many digits of a BigInt are read and written.
const maxBigInt = 308

// maxBigIntBits is how many bits no BigInt of so many digits exceeds.
const maxBigIntBits = 1024

// bigint returns the BigInt that an integer stands for.
func (d *decoder) bigint(text string) (goja.Value, bool) {
	if len(strings.TrimPrefix(text, "-")) > maxBigInt {
		return nil, false
	}
	b, ok := new(big.Int).SetString(text, 10)
	if !ok {
		return nil, false
	}
	return d.rt.ToValue(b), true
}
