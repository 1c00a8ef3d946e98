package jsonguard

import (
	"errors"
	"math/big"
	"strconv"
	"strings"
	"testing"
)

func TestOverflowIsTheHalfwayPointAboveTheGreatestFloat(t *testing.T) {
	one := big.NewInt(1)
	want := new(big.Int).Sub(new(big.Int).Lsh(one, 1024), new(big.Int).Lsh(one, 970))
	if overflow != want.String() {
		t.Errorf("overflow = %s, want %s", overflow, want)
	}
}

func TestNumbersOverflowExactlyWhenParseFloatSaysSo(t *testing.T) {
	below, _ := new(big.Int).SetString(overflow, 10)
	below.Sub(below, big.NewInt(1))
	zeros := strings.Repeat("0", 1000)
	for _, text := range []string{
		overflow, below.String(), overflow + ".0", below.String() + ".999", overflow + "0", overflow + "e-1", overflow + "0e-1",
		"0." + overflow + "e309", "0." + below.String() + "e309", "0.000" + overflow + "e312", "0.000" + below.String() + "e312",
		"1.7976931348623158e308", "1.7976931348623159e308", "17.9769313486231580e307", "1.8e308", "1e308", "9e307", "9.99e308", "1e309",
		"0e9999", "0.0e9999", "0." + zeros + "1e1000", "0." + zeros + "1e1309", "0." + zeros + "1e1310", "0." + zeros + "2e1309",
		"1" + zeros, "1" + zeros + "e-1000", "1" + zeros + "e-700", "1" + zeros + "e-692", "5e-324", "1e-400",
	} {
		_, err := strconv.ParseFloat(text, 64)
		overflows := errors.Is(err, strconv.ErrRange)
		if got := kindOf(Check([]byte(text), Client())) == BadNumber; got != overflows {
			t.Errorf("%.60s: refused %t, ParseFloat overflows %t", text, got, overflows)
		}
	}
}
