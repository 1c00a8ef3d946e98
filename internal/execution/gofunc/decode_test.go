package gofunc_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/internal/execution/gofunc"
)

type plain struct {
	Text  string `json:"text"`
	Yes   bool   `json:"yes,omitempty"`
	Small int8   `json:"small"`
	Large int64
	Real  float64 `json:"real"`
	Left  string  `json:"-"`
	own   int     //lint:ignore U1000 JSON has no say in what is not exported
}

type upper string

func (u *upper) UnmarshalText(text []byte) error {
	*u = upper(strings.ToUpper(string(text)))
	return nil
}

type rich struct {
	plain
	Upper  upper           `json:"upper"`
	List   []int           `json:"list"`
	When   time.Time       `json:"when"`
	Number json.Number     `json:"number"`
	Quoted int             `json:"quoted,string"`
	Inner  struct{ A int } `json:"inner"`
}

type renamed struct {
	Upper upper `json:"upper"`
}

type quoted struct {
	N int `json:"n,string"`
}

// unnamed has a tag that encoding/json ignores.
type unnamed struct {
	//lint:ignore SA5008 the invalid name is intended
	Quote string `json:"it's\\"`
}

// checkDecode compares the decoder with encoding/json.
func checkDecode[In any](t *testing.T, text string) {
	t.Helper()
	var want In
	wantErr := json.Unmarshal([]byte(text), &want)
	got, err := gofunc.NewDecoder[In]().Decode(decodeArgs(t, text), []byte(text))
	if (err != nil) != (wantErr != nil) {
		t.Errorf("%s: %v, encoding/json says %v", text, err, wantErr)
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(plain{}, rich{})); wantErr == nil && diff != "" {
		t.Errorf("%s (-want +got)\n%s", text, diff)
	}
}

func decodeArgs(t *testing.T, text string) (args map[string]any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &args); err != nil {
		t.Fatal(err)
	}
	return args
}

func TestDecode_likeEncodingJSON(t *testing.T) {
	for _, text := range []string{
		`{}`, `{"text":"a\u00e9\n","yes":true,"real":1.5}`, `{"text":null}`, `{"text":1}`, `{"yes":"no"}`, `{"real":"1"}`, `{"Left":"x","own":1}`,
	} {
		checkDecode[plain](t, text)
	}
	checkDecode[rich](t, `{"text":"a","upper":"b","list":[1,2],"when":"2026-07-28T00:00:00Z","number":12,"quoted":"3","inner":{"A":4}}`)
	checkDecode[renamed](t, `{"upper":"b"}`)
	checkDecode[quoted](t, `{"n":"3"}`)
	checkDecode[unnamed](t, `{"it's\\":"x","Quote":"y"}`)
	checkDecode[map[string]any](t, `{"a":{"b":1}}`)
}

// 1.0 is an integer, unlike in encoding/json.
func TestDecode_integerWithFraction(t *testing.T) {
	in, err := gofunc.NewDecoder[plain]().Decode(map[string]any{"small": int64(-3), "Large": int64(1)}, []byte(`{"small":-3.0,"Large":1e0}`))
	if diff := cmp.Diff(plain{Small: -3, Large: 1}, in, cmp.AllowUnexported(plain{})); err != nil || diff != "" {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
	if in, err := gofunc.NewDecoder[plain]().Decode(map[string]any{"small": int64(300)}, []byte(`{"small":300}`)); err == nil {
		t.Errorf("an int8 holds 300 as %d", in.Small)
	}
}

type mixed struct {
	List []int     `json:"a/list"`
	When time.Time `json:"when,omitzero"`
}

func TestDecode_integerWithFractionAmongOthers(t *testing.T) {
	in, err := gofunc.NewDecoder[mixed]().Decode(map[string]any{"a/list": []any{int64(1), int64(20)}}, []byte(`{"a/list":[1.0,2e1]}`))
	if diff := cmp.Diff(mixed{List: []int{1, 20}}, in); err != nil || diff != "" {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
}

func TestDecode_errorPath(t *testing.T) {
	for text, path := range map[string]string{`{"a/list":[1],"when":"soon"}`: "/when", `{"a/list":[1e300]}`: "/a~1list"} {
		_, err := gofunc.NewDecoder[mixed]().Decode(decodeArgs(t, text), []byte(text))
		if want := path + " is not of the form that the tool can read"; err == nil || err.Error() != want {
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
	}
	if _, err := gofunc.NewDecoder[time.Time]().Decode(map[string]any{}, []byte(`{}`)); err == nil || strings.HasPrefix(err.Error(), "/") {
		t.Errorf("a type with UnmarshalText: got %v", err)
	}
}

func TestDecode_plainAllocations(t *testing.T) {
	d, args := gofunc.NewDecoder[plain](), map[string]any{"text": "a", "real": 1.5}
	if got := testing.AllocsPerRun(100, func() { _, _ = d.Decode(args, nil) }); got > 1 {
		t.Errorf("%v allocations", got)
	}
}
