package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/ops/control"
)

const limitedConfig = `limit "callers" {
  key   = "principal.id"
  rate  = "10/h"
  burst = 10
}
limit "arguments" {
  tools = ["add"]
  key   = "principal.id + string(args.a)"
  rate  = "4/h"
  burst = 4
}
limit "all" {
  tools       = ["ask"]
  concurrency = 2
}
`

func TestLimits_keysInUse(t *testing.T) {
	t.Parallel()
	a := startControlled(t, limitedConfig)
	for i := range 9 {
		call := toolCall("add", fmt.Sprintf(`{"a":%d,"b":2}`, -9876543210+i%3))
		call.Principal = &identity.Principal{ID: "ada", Kind: identity.KindToken, Issuer: "https://idp.example.com"}
		if i > 5 {
			call.Principal.ID = "bob"
		}
		if result, _ := a.result(t, call); result.Code != "" {
			t.Fatalf("call %d: %+v", i, result)
		}
	}
	var got []control.LimitUse
	a.must(t, control.Limits, nil, &got)
	var lines []string
	got = slices.DeleteFunc(got, func(u control.LimitUse) bool { return u.Limit == "rate" }) // recovers at once
	for _, u := range got {
		lines = append(lines, fmt.Sprintf("%s %s: %s, %d keys, %t", u.Limit, u.Kind, u.Bound, u.Keys, u.Shared))
		if u.Place == nil || u.Place.Line == 0 {
			t.Errorf("%s has no place", u.Limit)
		}
		for _, k := range u.Most {
			if k.Share <= 0 || k.Share > 1 || (k.Key == "") != (k.Hash != "") {
				t.Errorf("%s: %+v", u.Limit, k)
			}
		}
	}
	want := []string{
		"callers rate: 10 calls an hour, 10 at once after a pause, 2 keys, false",
		"arguments rate: 4 calls an hour, 4 at once after a pause, 6 keys, false",
		"all concurrency: 2 running, 0 keys, false",
	}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Fatalf("(-want +got)\n%s", diff)
	}
	ada := got[0].Most[0]
	if ada.Key != "ada" || ada.AuthKind != "jwt" || ada.Issuer != "https://idp.example.com" || ada.Share > 0.6 || ada.Share <= got[0].Most[1].Share || got[0].Most[1].Key != "bob" {
		t.Errorf("got %+v", got[0].Most)
	}
	// A key with arguments is a hash, and so are its parts.
	text, _ := json.Marshal(got[1])
	if strings.Contains(string(text), "9876543") || got[1].Most[0].AuthKind != "jwt" || got[1].Most[0].Hash == got[1].Most[1].Hash {
		t.Errorf("got %s", text)
	}
}
