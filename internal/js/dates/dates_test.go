package dates

import (
	"testing"
	"time"
)

// FuzzDates checks that parsing and formatting never panic, and that they are inverse for a pattern
// with all fields.
func FuzzDates(f *testing.F) {
	f.Add(int64(0), "2026-03-29", "YYYY-MM-DD")
	f.Add(int64(1_774_742_400_123), "Sun 1:00 pm", "ddd h:mm A")
	f.Add(int64(-1), "+0100", "[x]Z")
	f.Fuzz(func(t *testing.T, millis int64, text, pattern string) {
		_, _ = Parse(text, pattern, time.UTC)
		_, _ = ParseISO(text, time.UTC)
		at := time.UnixMilli(millis).UTC()
		if at.Year() < 0 || at.Year() > 9999 {
			return
		}
		_, _ = Format(at, pattern)
		for _, whole := range []string{"YYYY-MM-DDTHH:mm:ss.SSSZ", "[on] dddd, D MMMM YYYY [at] h:m:s A .SSS Z", "SSSYYYYMMDDHHmmss"} {
			written, err := Format(at, whole)
			if err != nil {
				t.Fatal(err)
			}
			if read, err := Parse(written, whole, time.UTC); err != nil || !read.Equal(at) {
				t.Errorf("%s: %s became %s, %v", whole, written, read, err)
			}
		}
	})
}
