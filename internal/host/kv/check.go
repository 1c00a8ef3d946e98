package kv

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"time"
	"unicode/utf8"

	"github.com/mcpd/mcpd/internal/language/grant"
	"github.com/mcpd/mcpd/scripting"
)

// checkKey refuses what is no key.
func (o *operation) checkKey() error {
	if o.Key == "" || len(o.Key) > grant.MaxKey || !utf8.ValidString(o.Key) {
		return refuse(scripting.Invalid, fmt.Sprintf("a key is text of 1 to %d bytes", grant.MaxKey))
	}
	return nil
}

// checkValue refuses what cannot be kept.
func (o *operation) checkValue() error {
	switch {
	case len(o.Value) == 0:
		return refuse(scripting.Invalid, "the value is missing")
	case int64(len(o.Value)) > o.grant.MaxValue:
		return refuse(scripting.TooLarge, fmt.Sprintf("the value takes %d bytes as JSON, and the grant allows %d", len(o.Value), o.grant.MaxValue))
	}
	return nil
}

// ttl returns how long a value is kept, 0 for until it is removed.
func (o *operation) ttl() (time.Duration, error) {
	if o.TTL == nil {
		return o.grant.TTL, nil
	}
	ms := *o.TTL
	switch {
	case ms <= 0 || ms > longest.Milliseconds():
		return 0, refuse(scripting.Invalid, "ttl is a number of milliseconds, of a year at most")
	case o.grant.TTL > 0 && ms > o.grant.TTL.Milliseconds():
		return 0, refuse(scripting.NotGranted, fmt.Sprintf("the grant keeps values for %s at most", o.grant.TTL))
	}
	return time.Duration(ms) * time.Millisecond, nil
}

// same reports whether two values mean the same, in whatever order their members
// stand; none of both is the same, too.
func same(a, b []byte) bool {
	if len(a) == 0 || len(b) == 0 || bytes.Equal(a, b) {
		return len(a) == len(b)
	}
	var left, right any
	return json.Unmarshal(a, &left) == nil && json.Unmarshal(b, &right) == nil && reflect.DeepEqual(left, right)
}
