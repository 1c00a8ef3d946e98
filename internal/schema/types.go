package schema

import (
	"math"
	"math/big"
	"strings"
)

// types is a set of the types of JSON Schema.
type types uint8

const (
	nullType types = 1 << iota
	booleanType
	integerType
	numberType
	stringType
	arrayType
	objectType
)

// typeNames are the names of the types, in the order of their bits.
var typeNames = []string{"null", "boolean", "integer", "number", "string", "array", "object"}

// typeNamed returns the type of the given name, or 0 when there is none.
func typeNamed(name string) types {
	for i, n := range typeNames {
		if n == name {
			return 1 << i
		}
	}
	return 0
}

// typeOf returns the type of a decoded value. Every integer is a number too,
// but integerType alone stands for it.
func typeOf(v any) types {
	switch v := v.(type) {
	case bool:
		return booleanType
	case int64, *big.Int:
		return integerType
	case float64:
		if v == math.Trunc(v) {
			return integerType
		}
		return numberType
	case string:
		return stringType
	case []any:
		return arrayType
	case map[string]any:
		return objectType
	}
	return nullType
}

// admits reports whether the set holds the type of a value. The empty set
// holds every type.
func (t types) admits(of types) bool {
	if t&numberType != 0 {
		t |= integerType
	}
	return t == 0 || t&of != 0
}

// words are the types with their articles, as in "an object".
func (t types) words() []string {
	if t&numberType != 0 {
		t &^= integerType
	}
	var list []string
	for i, name := range typeNames {
		switch {
		case t&(1<<i) == 0:
		case name == "null":
			list = append(list, name)
		default:
			list = append(list, article(name))
		}
	}
	return list
}

// mustBe says what a value must be in the place of one of the type got.
func (t types) mustBe(got types) string {
	words := t.words()
	if t.admits(nullType) { // the likeliest last
		words = append(words[1:], words[0])
	}
	message := "must be " + join(words, "or")
	switch {
	case t&integerType != 0 && got == numberType:
		return message + ", not a fraction"
	case got == 0:
		return message
	case got == integerType:
		got = numberType
	}
	return message + ", not " + got.words()[0]
}

func article(noun string) string {
	if strings.ContainsRune("aeio", rune(noun[0])) {
		return "an " + noun
	}
	return "a " + noun
}

// join lists words, as in "a, b or c".
func join(words []string, last string) string {
	n := len(words) - 1
	if n < 1 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:n], ", ") + " " + last + " " + words[n]
}
