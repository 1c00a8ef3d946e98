package kv

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/mcpd/mcpd/internal/base/state"
	"github.com/mcpd/mcpd/internal/language/grant"
	"github.com/mcpd/mcpd/scripting"
)

const (
	// maxTTL is the maximum lifetime of a value if the grant sets none.
	maxTTL = 365 * 24 * time.Hour
	// The default and the maximum number of listed keys.
	defaultListLimit = 100
	maxListLimit     = 1000
	// maxWhole is the largest integer that scripts represent exactly.
	maxWhole = 1<<53 - 1
)

// request is the payload of an operation; each uses some of its members.
type request struct {
	Key      string          `json:"key"`
	Value    json.RawMessage `json:"value"`
	Expected json.RawMessage `json:"expected"`
	TTL      *int64          `json:"ttl_ms"`
	IfAbsent bool            `json:"if_absent"`
	Prefix   string          `json:"prefix"`
	After    string          `json:"after"`
	Limit    int             `json:"limit"`
	By       *int64          `json:"by"`
}

type (
	valueAnswer struct {
		Value json.RawMessage `json:"value,omitempty"` // absent if there is none
	}
	doneAnswer struct {
		Done bool `json:"done"`
	}
	keysAnswer struct {
		Keys []string `json:"keys"`
	}
)

type operation struct {
	request
	grant grant.KV
	space string
	store state.Pairs
}

func (o *operation) get() (any, error) {
	if err := o.checkKey(); err != nil {
		return nil, err
	}
	found, err := o.store.Pair(o.space, o.Key)
	return valueAnswer{found.Value}, err
}

func (o *operation) put() (any, error) {
	return o.compareAndSet(func(old state.Pair) bool { return !o.IfAbsent || old.Value == nil })
}

func (o *operation) cas() (any, error) {
	return o.compareAndSet(func(old state.Pair) bool { return equalJSON(o.Expected, old.Value) })
}

// compareAndSet stores the value of the request if wanted accepts the old pair.
func (o *operation) compareAndSet(wanted func(old state.Pair) bool) (any, error) {
	ttl, err := o.ttl()
	if err == nil {
		err = o.checkValue()
	}
	if err != nil {
		return nil, err
	}
	return o.change(func(old state.Pair, now time.Time) (state.Pair, error) {
		if !wanted(old) {
			return old, errUnchanged
		}
		return newPair(o.Value, ttl, now), nil
	})
}

func (o *operation) remove() (any, error) {
	return o.change(func(old state.Pair, _ time.Time) (state.Pair, error) {
		if old.Value == nil {
			return old, errUnchanged
		}
		return state.Pair{}, nil
	})
}

// errUnchanged is returned by a change that has no effect.
var errUnchanged = errors.New("the pair is kept")

// change changes a pair, and returns whether it has changed.
func (o *operation) change(change func(state.Pair, time.Time) (state.Pair, error)) (any, error) {
	if err := o.checkKey(); err != nil {
		return nil, err
	}
	err := o.store.ChangePair(o.space, o.Key, state.Room{Keys: o.grant.MaxKeys, Bytes: o.grant.MaxTotal}, change)
	if errors.Is(err, errUnchanged) {
		return doneAnswer{}, nil
	}
	return doneAnswer{Done: true}, err
}

func (o *operation) list() (any, error) {
	switch {
	case !utf8.ValidString(o.Prefix) || !utf8.ValidString(o.After) || len(o.Prefix) > grant.MaxKey || len(o.After) > grant.MaxKey:
		return nil, newHostError(scripting.Invalid, fmt.Sprintf("prefix and after are text of at most %d bytes", grant.MaxKey))
	case o.Limit < 0 || o.Limit > maxListLimit:
		return nil, newHostError(scripting.Invalid, fmt.Sprintf("limit is a number from 1 to %d", maxListLimit))
	case o.Limit == 0:
		o.Limit = defaultListLimit
	}
	keys, err := o.store.PairKeys(o.space, o.Prefix, o.After, o.Limit)
	if keys == nil {
		keys = []string{}
	}
	return keysAnswer{keys}, err
}

// incr adds to a number, which starts at 0. The expiry of an existing value does not change.
func (o *operation) incr() (any, error) {
	by := int64(1)
	if o.By != nil {
		by = *o.By
	}
	if by > maxWhole || by < -maxWhole {
		return nil, newHostError(scripting.Invalid, "the added number is too large")
	}
	var sum json.RawMessage
	_, err := o.change(func(old state.Pair, now time.Time) (state.Pair, error) {
		n, ok := parseInteger(old.Value)
		switch {
		case !ok:
			return old, newHostError(scripting.Invalid, "the value of the key is not an integer")
		case n+by > maxWhole || n+by < -maxWhole:
			return old, newHostError(scripting.Invalid, "the sum is too large")
		}
		made := newPair(strconv.AppendInt(nil, n+by, 10), o.grant.TTL, now)
		if old.Value != nil {
			made.Expires = old.Expires
		}
		sum = made.Value
		return made, nil
	})
	return valueAnswer{sum}, err
}

// parseInteger returns the integer in a value; no value is 0.
func parseInteger(value []byte) (int64, bool) {
	if value == nil {
		return 0, true
	}
	f, err := strconv.ParseFloat(string(value), 64)
	return int64(f), err == nil && f == math.Trunc(f) && math.Abs(f) <= maxWhole
}

// newPair returns a pair with a lifetime, or without expiry if ttl is 0.
func newPair(value []byte, ttl time.Duration, now time.Time) state.Pair {
	if ttl == 0 {
		return state.Pair{Value: value}
	}
	return state.Pair{Value: value, Expires: now.Add(ttl)}
}

func (o *operation) checkKey() error {
	if o.Key == "" || len(o.Key) > grant.MaxKey || !utf8.ValidString(o.Key) {
		return newHostError(scripting.Invalid, fmt.Sprintf("a key is text of 1 to %d bytes", grant.MaxKey))
	}
	return nil
}

func (o *operation) checkValue() error {
	switch {
	case len(o.Value) == 0:
		return newHostError(scripting.Invalid, "the value is missing")
	case int64(len(o.Value)) > o.grant.MaxValue:
		return newHostError(scripting.TooLarge, fmt.Sprintf("the value has %d bytes as JSON, and the grant allows %d", len(o.Value), o.grant.MaxValue))
	}
	return nil
}

// ttl returns the lifetime of a value, or 0 for no expiry.
func (o *operation) ttl() (time.Duration, error) {
	if o.TTL == nil {
		return o.grant.TTL, nil
	}
	ms := *o.TTL
	switch {
	case ms <= 0 || ms > maxTTL.Milliseconds():
		return 0, newHostError(scripting.Invalid, "ttl is a number of milliseconds, at most a year")
	case o.grant.TTL > 0 && ms > o.grant.TTL.Milliseconds():
		return 0, newHostError(scripting.NotGranted, fmt.Sprintf("the grant stores values for at most %s", o.grant.TTL))
	}
	return time.Duration(ms) * time.Millisecond, nil
}

// equalJSON reports whether two JSON values are equal, regardless of member order. Two missing
// values are equal.
func equalJSON(a, b []byte) bool {
	if len(a) == 0 || len(b) == 0 || bytes.Equal(a, b) {
		return len(a) == len(b)
	}
	var left, right any
	return json.Unmarshal(a, &left) == nil && json.Unmarshal(b, &right) == nil && reflect.DeepEqual(left, right)
}
