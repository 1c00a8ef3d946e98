package telemetry

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// environment reads variables. What they hold is in no error: it may be a secret.
type environment struct {
	lookup func(name string) (string, bool)
	read   func(name string) ([]byte, error)
}

// text returns the value of the first of the variables that is set and not empty,
// as the OpenTelemetry specification has it (Environment Variable Specification,
// Parsing empty value), and the name of that one; the first when none is.
func (e environment) text(names ...string) (value, name string) {
	for _, name := range names {
		if value, ok := e.lookup(name); ok && strings.TrimSpace(value) != "" {
			return strings.TrimSpace(value), name
		}
	}
	return "", names[0]
}

// choice returns the value of a variable in lower case, which must be one of
// those offered, or the first of them when it is not set.
func (e environment) choice(names []string, offered ...string) (string, error) {
	value, name := e.text(names...)
	if value == "" {
		return offered[0], nil
	}
	for _, one := range offered {
		if strings.EqualFold(value, one) {
			return one, nil
		}
	}
	return "", fmt.Errorf("environment variable %s: write %s", name, alternatives(offered))
}

// flag reports whether a variable is "true". Any other value is false, as the
// specification has it, except that what is neither is an error here.
func (e environment) flag(name string) (bool, error) {
	value, err := e.choice([]string{name}, "false", "true")
	return value == "true", err
}

// count returns a variable that is a number from 1 to most.
func (e environment) count(byDefault, most int, names ...string) (int, error) {
	value, name := e.text(names...)
	if value == "" {
		return byDefault, nil
	}
	n, err := strconv.Atoi(value)
	if err != nil || n < 1 || n > most {
		return 0, fmt.Errorf("environment variable %s: write a whole number from 1 to %d", name, most)
	}
	return n, nil
}

// milliseconds returns a variable that is a time in milliseconds, an hour at most.
func (e environment) milliseconds(byDefault time.Duration, names ...string) (time.Duration, error) {
	n, err := e.count(int(byDefault/time.Millisecond), int(time.Hour/time.Millisecond), names...)
	return time.Duration(n) * time.Millisecond, err
}

// pair is one key with its value.
type pair struct{ key, value string }

// pairs returns a variable that is a list such as "a=b,c=d", with percent-encoding
// in values, as W3C Baggage has it. allowed says which characters a key may have.
func (e environment) pairs(allowed func(key string) bool, names ...string) ([]pair, error) {
	value, name := e.text(names...)
	wrong := fmt.Errorf("environment variable %s: write key=value pairs with commas between them, and other characters in values as %%XX", name)
	var list []pair
	for member := range strings.SplitSeq(value, ",") {
		if member = strings.TrimSpace(member); member == "" {
			continue
		}
		key, encoded, found := strings.Cut(member, "=")
		key = strings.TrimSpace(key)
		decoded, err := url.PathUnescape(strings.TrimSpace(encoded))
		if !found || err != nil || !allowed(key) || !printable(decoded) {
			return nil, wrong
		}
		list = append(list, pair{key, decoded})
	}
	return list, nil
}

// file returns what the file holds that a variable names; nil when it is not set.
func (e environment) file(names ...string) ([]byte, error) {
	path, name := e.text(names...)
	if path == "" {
		return nil, nil
	}
	content, err := e.read(path)
	if err != nil {
		return nil, fmt.Errorf("environment variable %s: %w", name, err)
	}
	return content, nil
}

// printable reports whether a text is UTF-8 without control characters.
func printable(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f })
}

// alternatives joins words: "a, b or c".
func alternatives(words []string) string {
	last := len(words) - 1
	if last == 0 {
		return words[0]
	}
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// all joins the errors of several variables, so that all are told at once.
type all struct{ errs []error }

// must notes an error and returns the value that came with it.
func must[T any](a *all, value T, err error) T {
	if err != nil {
		a.errs = append(a.errs, err)
	}
	return value
}

func (a *all) err() error { return errors.Join(a.errs...) }
