package policylang

import (
	"strings"

	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
)

// typeName returns a type in the words of the tool language, with an article.
func typeName(t *types.Type) string { return typeWords(t.String()) }

// typeWords is typeName for a type as CEL's messages write it.
func typeWords(t string) string {
	name, inner, _ := strings.Cut(strings.TrimSuffix(t, ")"), "(")
	switch name {
	case "bool":
		return "true or false"
	case "int":
		return "an integer"
	case "uint":
		return "an unsigned integer"
	case "double":
		return "a number"
	case "string":
		return "a string"
	case "bytes":
		return "bytes"
	case "list":
		return "a list" + ofMany(inner)
	case "map":
		_, values, _ := strings.Cut(inner, ", ")
		return "a map" + ofMany(values)
	case "null", "null_type":
		return "null"
	case "wrapper":
		return typeWords(inner) + " or null"
	case "timestamp", "google.protobuf.Timestamp":
		return "a timestamp"
	case "duration", "google.protobuf.Duration":
		return "a duration"
	case "optional_type":
		return "an optional value"
	case "type":
		return "a type"
	case "net.IP":
		return "an IP address"
	case "net.CIDR":
		return "a network"
	case "dyn", "any", "error", "!error!":
		return "a value of any type"
	}
	return "an object"
}

// ofMany returns " of strings" for the elements of a list.
func ofMany(t string) string {
	switch t {
	case "int":
		return " of integers"
	case "double":
		return " of numbers"
	case "string":
		return " of strings"
	case "bool":
		return " of bools"
	}
	return ""
}

// signOf returns the sign of a binary operator as it is written, or "".
func signOf(function string) string {
	if function == operators.In {
		return "in"
	}
	sign, ok := operators.FindReverseBinaryOperator(function)
	if !ok {
		return ""
	}
	return sign
}
