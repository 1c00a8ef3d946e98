package schema_test

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/mcpd/mcpd/internal/language/schema"
)

type sound struct {
	Text   string `json:"text"`
	Yes    bool   `json:"yes,omitempty"`
	Count  int
	Small  uint8   `json:"small"`
	Large  uint64  `json:"large.one-two_3"`
	Real   float32 `json:"real,omitzero"`
	Within struct {
		A int64 `json:"a"`
	} `json:"within"`
	Left chan int `json:"-"`
}

type oddlyNamed struct {
	//lint:ignore SA5008 encoding/json takes the name of the field instead
	N int `json:"it's"`
}

type ownWay string

func (*ownWay) MarshalJSON() ([]byte, error) { return []byte("1"), nil }

func TestTrusted_valid(t *testing.T) {
	s, err := schema.For[sound]()
	if err != nil || !s.Trusted() {
		t.Fatalf("trusted: %v, %v", s.Trusted(), err)
	}
	filled := sound{Text: "\xff", Yes: true, Count: -1 << 62, Small: 255, Large: 1<<64 - 1, Real: -1.5}
	filled.Within.A = 1<<63 - 1
	for _, value := range []sound{{}, filled} {
		text, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		if v := s.Validate(text); len(v) > 0 {
			t.Errorf("%s: %v", text, v)
		}
	}
}

func TestTrusted_false(t *testing.T) {
	checked := map[reflect.Type]func() (*schema.Schema, error){
		reflect.TypeFor[[]string]():           schema.For[[]string],
		reflect.TypeFor[map[string]int]():     schema.For[map[string]int],
		reflect.TypeFor[any]():                schema.For[any],
		reflect.TypeFor[*sound]():             schema.For[*sound],
		reflect.TypeFor[time.Time]():          schema.For[time.Time],
		reflect.TypeFor[json.Number]():        schema.For[json.Number],
		reflect.TypeFor[struct{ A ownWay }](): schema.For[struct{ A ownWay }],
		reflect.TypeFor[struct{ sound }]():    schema.For[struct{ sound }],
		reflect.TypeFor[struct {
			N int `json:",string"`
		}](): schema.For[struct {
			N int `json:",string"`
		}],
		reflect.TypeFor[oddlyNamed](): schema.For[oddlyNamed],
	}
	for name, of := range checked {
		s, err := of()
		if err != nil {
			t.Fatal(name, err)
		}
		if s.Trusted() {
			t.Errorf("the schema of %v is trusted", name)
		}
	}
}

// Thousands of tools in Go may have the same types.
func TestFor_sameTypeSharesSchema(t *testing.T) {
	first, err := schema.For[sound]()
	if err != nil {
		t.Fatal(err)
	}
	if allocations := testing.AllocsPerRun(100, func() {
		if again, err := schema.For[sound](); again != first || err != nil {
			t.Fatal("another schema", err)
		}
	}); allocations > 0 {
		t.Errorf("%v allocations, want 0", allocations)
	}
}
