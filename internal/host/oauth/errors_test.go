package oauth

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func (c *court) wantTold(want ...string) {
	c.t.Helper()
	if diff := cmp.Diff(want, c.told); diff != "" {
		c.t.Errorf("emitted (-want +got)\n%s", diff)
	}
}

// It is called once: renewals are the same token.
func TestOnTokenAdded_beforeStore(t *testing.T) {
	c := newCourt(t)
	_, page, _ := c.get("ada")
	c.wantTold()
	c.come(allow(page))
	c.pass(time.Hour)
	if token, _, err := c.get("ada"); token != "access-2" || err != nil {
		t.Errorf("got %q and %v", token, err)
	}
	c.wantTold("k ada joined false")
}

// The token is not stored either, whatever the callback; and a token without a confirmed code
// is not reported.
func TestOnTokenAdded_error(t *testing.T) {
	c := newCourt(t)
	c.untold = errors.New("the disk is full")
	_, page, _ := c.get("ada")
	if got := c.come(allow(page)); got != "403 "+pageRefused {
		t.Error(got)
	}
	c.wantTold("k ada joined false")
	if token, again, err := c.get("ada"); token != "" || again == nil || len(c.vault.kept) > 0 {
		t.Errorf("got %q, %v and %v, kept is %q", token, again, err, c.vault.kept)
	}

	h := newHall(t)
	h.untold = c.untold
	code, _ := h.back(h.page("ada"))
	h.wantTold()
	h.types("ada", code)
	h.wantTold("k ada joined false")
	h.wantToken("ada", "")
	h.wantKept(0)
}

// The reason is reported. A temporary renewal failure loses no token.
func TestOnTokenLost(t *testing.T) {
	c := newCourt(t)
	_, page, _ := c.get("ada")
	c.come(allow(page))
	c.pass(time.Hour)
	c.refuse("temporarily_unavailable")
	c.get("ada")
	c.wantTold("k ada joined false")
	c.refuse("invalid_grant")
	c.pass(maxBackoff)
	c.get("ada")
	c.wantTold("k ada joined false", "k ada refused true")

	c = newCourt(t)
	c.vault.full = errors.New("no room")
	_, page, _ = c.get("ada")
	c.come(allow(page))
	c.wantTold("k ada joined false", "k ada unkept false")

	c = newCourt(t)
	if err := c.users.storeFirst(&authorization{caller: Caller{User: "ada"}}, token{value: "short", life: time.Minute}); err != nil {
		t.Fatal(err)
	}
	c.pass(time.Hour)
	c.get("ada")
	c.wantTold("k ada joined false", "k ada ended true")
}
