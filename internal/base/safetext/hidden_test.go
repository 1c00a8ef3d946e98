package safetext

import (
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
)

func TestHides_ordinaryText(t *testing.T) {
	for name, text := range map[string]string{
		"empty":                      "",
		"lines and tabs":             "Finds a customer.\n\n\t- by name\r\n\t- by number\n",
		"spaces of other widths":     "70\u00a0€ « x\u202f» 、\u3000全角",
		"combining marks":            "e\u0301 Vie\u0323\u0302t Z\u0301\u0302\u0303",
		"Hebrew with points":         "שָׁלוֹם עוֹלָם (1, 2)",
		"Arabic with marks":          "السَّلَامُ عَلَيْكُم \u0600١٢",
		"Persian":                    "می\u200cخواهم کتاب\u200cها را ببینم",
		"Persian plural of a name":   "همهٔ API\u200cها و URL\u200cهای ما",
		"Persian abbreviation":       "۱۴۰۳ ه\u200d.ش",
		"Hindi":                      "क्\u200dष श्री र्\u200dय क्\u200cष",
		"Malayalam at word ends":     "അവന്\u200d വന്നു",
		"Sinhala":                    "ශ්\u200dරී ලංකා",
		"Bengali":                    "\u09b0\u200d\u09cd\u09af",
		"Khmer words":                "ភាសា\u200bខ្មែរ",
		"Thai words":                 "ภาษา\u200bไทย",
		"Myanmar stack":              "ကြွှေ့",
		"Mongolian selectors":        "ᠨ\u180bᠠ ᠮᠤ\u180eᠠ",
		"Tibetan stack":              "བསྒྲུབས",
		"emoji":                      "⚠\ufe0f Deletes ❤\ufe0f ☺\ufe0e ©\ufe0f ™\ufe0f ↔\ufe0f ‼\ufe0f",
		"emoji keys":                 "1\ufe0f\u20e3 #\ufe0f\u20e3 *\u20e3",
		"emoji families":             "👨\u200d👩🏽\u200d👧 🏳\ufe0f\u200d🌈 🧑🏽\u200d❤\ufe0f\u200d💋\u200d🧑🏾 👁\ufe0f\u200d🗨\ufe0f 🏴\u200d☠\ufe0f",
		"emoji flags":                "🇩🇪 🇨🇭",
		"emoji flags made of tags":   "🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f 🏴\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f",
		"emoji newer than Go's":      "\U0001fae9 \U0001fac8\u200d\U0001fae9",
		"Braille":                    "⠓⠑⠇⠇⠕⠀⠺⠕⠗⠇⠙",
		"characters beyond the BMP":  "𝒳 𐍈 𠮷",
		"replacement of bytes":       "a\ufffdb",
		"invalid bytes":              "a\xff\xfeb",
		"box drawing and arrows":     "│ ├── → ⇒ █",
		"Japanese with a long vowel": "カスタマーを検索します。",
	} {
		if Hides(text) {
			t.Errorf("%s: %+q has invisible characters: %s", name, text, Escape(text))
		}
		if got := Escape(text); got != text {
			t.Errorf("%s: %+q becomes %+q", name, text, got)
		}
	}
}

func TestHides_invisibleCharacters(t *testing.T) {
	for text, want := range map[string]string{
		"a\x1b[2Jb":             `a\x1b[2Jb`,
		"a\rb":                  `a\rb`,
		"a\r\r\nb":              "a\\r\r\nb",
		"\x00\x07\x08\x7f":      `\x00\a\b\x7f`,
		"a\u0085\u009bb":        `a\u0085\u009bb`,
		"\u202egpj.exe\u202c":   `\u202egpj.exe\u202c`,
		"a\u2066b\u2069":        `a\u2066b\u2069`,
		"\u200ea\u200f\u061c":   `\u200ea\u200f\u061c`,
		"a\u200bb":              `a\u200bb`,
		"a\u200cb\u200dc":       `a\u200cb\u200dc`,
		"\u2060\ufeff\u00ad":    `\u2060\ufeff\u00ad`,
		"\u2063\u2064\u206a":    `\u2063\u2064\u206a`,
		"\u2028\u2029":          `\u2028\u2029`,
		"a\U000e0041\U000e0042": `a\U000e0041\U000e0042`,
		"🏴\U000e0067\U000e0062\U000e0065\U000e0041\U000e007f": `🏴\U000e0067\U000e0062\U000e0065\U000e0041\U000e007f`,
		"a\ufe0f":                  `a\ufe0f`,
		"✔\ufe0f\ufe0f":            "✔\ufe0f\\ufe0f",
		"✔\ufe00\ufe01":            `✔\ufe00\ufe01`,
		"😀\U000e0100\U000e0101":    `😀\U000e0100\U000e0101`,
		"👨\u200d":                  `👨\u200d`,
		"👨\u200d\u200d👩":           `👨\u200d\u200d👩`,
		"1\ufe0f":                  `1\ufe0f`,
		"ب\u200c\u200cب":           `ب\u200c\u200cب`,
		"ب\u202cب":                 `ب\u202cب`,
		"ខ\u200b\u200bខ":           `ខ\u200b\u200bខ`,
		"\u3164\u115f\u1160\uffa0": `\u3164\u115f\u1160\uffa0`,
		"\u034f\u17b4\u180ba":      `\u034f\u17b4\u180ba`,
		"\ue000\U000f0000":         `\ue000\U000f0000`,
		"\ufdd0\U0001ffff\u0378":   `\ufdd0\U0001ffff\u0378`,
		"\ufff9a\ufffab\ufffb":     `\ufff9a\ufffab\ufffb`,
		"a\u2800b":                 `a\u2800b`,
		"a\U00016fe4\U0001d159":    `a\U00016fe4\U0001d159`,
		"\U0001d173\U0001bca0":     `\U0001d173\U0001bca0`,
		"Z" + strings.Repeat("\u0301", maxStacked+1): "Z" + strings.Repeat("\u0301", maxStacked) + `\u0301`,
	} {
		if !Hides(text) {
			t.Errorf("%+q has no invisible characters", text)
		}
		if got := Escape(text); got != want {
			t.Errorf("%+q becomes %+q, want %+q", text, got, want)
		}
	}
}

// Each default ignorable character between Latin letters is reported.
func TestHides_everyDefaultIgnorable(t *testing.T) {
	for r := range rune(unicode.MaxRune) {
		ignorable := unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector, unicode.Cc, unicode.Zl, unicode.Zp, unicode.Bidi_Control, unicode.Co) ||
			unicode.Is(unicode.Cf, r) && !unicode.Is(unicode.Prepended_Concatenation_Mark, r)
		if ignorable && r != '\n' && r != '\t' && !Hides("a"+string(r)+"b") {
			t.Errorf("%U not reported", r)
		}
		if ignorable && r != '\t' && r != '\n' && Hides(Escape("a"+string(r)+"b")) {
			t.Errorf("%U not escaped", r)
		}
	}
}

func TestEscapeIn_textsAndNames(t *testing.T) {
	value := map[string]any{"a\u200b": []any{"x\u202e", 7.0, map[string]any{"b": "y\x1b"}}, "ok": "z"}
	want := map[string]any{`a\u200b`: []any{`x\u202e`, 7.0, map[string]any{"b": `y\x1b`}}, "ok": "z"}
	got, err := EscapeIn(value)
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
	if !HidesIn(value) || HidesIn(got) {
		t.Errorf("hides: before %t, after %t", HidesIn(value), HidesIn(got))
	}
	if _, err := EscapeIn(map[string]any{"a\u200b": 1, `a\u200b`: 2}); err == nil {
		t.Error("two members collide")
	}
}

// FuzzEscape checks that escaped text has no invisible characters.
func FuzzEscape(f *testing.F) {
	for _, seed := range []string{"a\u200bب\u200cب", "1\ufe0f\u20e3", "👨\u200d👩\ufe0f", "\xff\x00", "Z\u0301\u0301", "🏴\U000e0067\U000e007f", "\r\n\r"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if got := Escape(text); Hides(got) || Hides(text) == (got == text) {
			t.Errorf("%+q becomes %+q", text, got)
		}
	})
}
