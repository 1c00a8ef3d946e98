package oauth

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"
)

// holding is what is known of a user: what the vault keeps, and what has become of
// it since.
type holding struct {
	kept
	// came is when the token came; the zero time of one that the vault had.
	came time.Time
	// failure is why the token could not be renewed, nil when it could; nobody asks
	// again before retry.
	failure error
	pause   time.Duration
	retry   time.Time
}

// atHand returns the token, or why there is none, unless somebody has to renew or to
// forget it first.
func (h holding) atHand(now time.Time) (token string, ok bool, err error) {
	lasts := now.Before(h.End)
	switch {
	case h.Access == "":
		return "", true, nil
	case h.Refresh == "":
		return h.Access, lasts, nil
	case now.Before(h.Renew), lasts && now.Before(h.retry):
		return h.Access, true, nil
	case now.Before(h.retry):
		return "", true, fmt.Errorf("%w (it is asked again in %s)", h.failure, h.retry.Sub(now).Round(time.Second))
	}
	return "", false, nil
}

// recall returns what is known of a user, of whom the vault is asked once. It waits
// for nobody who renews.
func (u *Users) recall(user string) (holding, error) {
	for {
		u.mu.Lock()
		h, known := u.known[user]
		drops := u.drops
		u.mu.Unlock()
		if known {
			return h, nil
		}
		value, err := u.vault.Get(user)
		if err != nil {
			return holding{}, err
		}
		if value != nil && json.Unmarshal(value, &h.kept) != nil {
			h = holding{}
		}
		if h, read := u.remember(user, h, drops); read {
			return h, nil
		}
	}
}

// remember takes up what the vault had of a user when so many drops had been, and
// returns what there is. It reports false when the vault must be asked again.
func (u *Users) remember(user string, h holding, drops uint64) (holding, bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if newer, known := u.known[user]; known { // it was kept while the vault was read
		return newer, true
	}
	if u.drops != drops {
		return holding{}, false
	}
	u.know(user, h)
	return h, true
}

// know remembers what there is of a user; mu is held.
func (u *Users) know(user string, h holding) {
	if len(u.known) >= maxKnown {
		clear(u.known)
	}
	u.known[user] = h
}

// join keeps the first token of the user of a visit, unless that was ended meanwhile. It
// is told of before: what cannot be told of is not kept.
func (u *Users) join(v *visit, got token) error {
	u.keeping.Lock()
	defer u.keeping.Unlock()
	u.mu.Lock()
	ended := v.stage == over
	u.mu.Unlock()
	if ended {
		return errReturn
	}
	if err := u.issuer.options.Joined(u.key, v.caller.User); err != nil {
		return err
	}
	k, value := u.made(got, kept{Given: u.issuer.options.Now()})
	if err := u.vault.Put(v.caller.User, value); err != nil {
		u.issuer.options.Lost(u.key, v.caller.User, Unkept)
		return err
	}
	u.take(v.caller.User, k)
	return nil
}

// replace keeps the token that comes after another one, unless that is not there any
// more, as it was dropped: then it reports false, and the vault knows what there is.
func (u *Users) replace(user string, got token, before kept) (bool, error) {
	u.keeping.Lock()
	defer u.keeping.Unlock()
	k, value := u.made(got, before)
	there, err := u.vault.Replace(user, value, func(old []byte) bool {
		var is kept
		return json.Unmarshal(old, &is) == nil && is.Access == before.Access && is.Refresh == before.Refresh
	})
	if err != nil {
		return false, err
	}
	if !there {
		u.mu.Lock()
		delete(u.known, user)
		u.mu.Unlock()
		return false, nil
	}
	u.take(user, k)
	return true, nil
}

// made returns what is kept of a token, and as bytes. A server that gives no other
// refresh token means the one of before.
func (u *Users) made(got token, before kept) (kept, []byte) {
	end := u.issuer.options.Now().Add(got.life)
	k := kept{Given: before.Given, Access: got.value, Refresh: cmp.Or(got.refresh, before.Refresh), Renew: end.Add(-min(early, got.life/10)), End: end}
	// Plain data always encodes.
	value, _ := json.Marshal(k)
	return k, value
}

// take remembers what has just come of a user.
func (u *Users) take(user string, k kept) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.know(user, holding{kept: k, came: u.issuer.options.Now()})
}

// forget takes a token away that is of no use any more, and tells why. When another one
// has come meanwhile, it stays and is returned.
func (u *Users) forget(user string, k kept, why Loss) (string, error) {
	u.keeping.Lock()
	defer u.keeping.Unlock()
	u.mu.Lock()
	newer := u.known[user]
	same := newer.Access == k.Access && newer.Refresh == k.Refresh
	if same {
		u.know(user, holding{})
	}
	u.mu.Unlock()
	if !same {
		return newer.Access, nil
	}
	u.issuer.options.Lost(u.key, user, why)
	return "", u.vault.Put(user, nil)
}

// failed remembers why the token of a user could not be renewed, if anything is
// known of them still.
func (u *Users) failed(user string, why error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	h, known := u.known[user]
	if !known {
		return
	}
	h.failure, h.pause = why, longer(h.pause)
	h.retry = u.issuer.options.Now().Add(h.pause)
	u.known[user] = h
}

// Refused says that a host did not accept the token of the caller of the context
// (see [For]), which may have been taken back: it is renewed when it is needed
// again, or forgotten where it cannot be, so that the user is asked. As whoever
// refuses may do so at will, no token is doubted for a minute after it came.
func (u *Users) Refused(ctx context.Context) {
	who, _ := ctx.Value(callerKey{}).(Caller)
	u.mu.Lock()
	defer u.mu.Unlock()
	h, known := u.known[who.User]
	now := u.issuer.options.Now()
	switch {
	case !known || now.Sub(h.came) < doubtPause:
		return
	case h.Refresh == "":
		h.End = now
	case now.Before(h.Renew):
		h.Renew = now
	}
	u.known[who.User] = h
}

// Drop forgets the tokens of the users of whom the function says so, in the vault too,
// and returns whose it has forgotten: none of them is given to anyone from then on. What
// was being renewed, or was about to be joined to such a user, is not kept either; who
// is on the way starts over.
func (u *Users) Drop(of func(user string) bool) (dropped []string, err error) {
	u.keeping.Lock()
	defer u.keeping.Unlock()
	for _, user := range u.disown(of) {
		dropped = append(dropped, user)
		err = errors.Join(err, u.vault.Put(user, nil))
	}
	return dropped, err
}

// disown forgets what is known of users, and returns who had a token.
func (u *Users) disown(of func(user string) bool) (had []string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.drops++
	for user, h := range u.known {
		if !of(user) {
			continue
		}
		if h.Access != "" {
			had = append(had, user)
		}
		u.known[user] = holding{}
	}
	for _, v := range u.visits {
		if v.stage != over && of(v.caller.User) {
			u.end(v, errReturn)
		}
	}
	return had
}

// Given returns when a user let a client have what a vault keeps of them; the zero
// time where it does not say.
func Given(value []byte) time.Time {
	var k kept
	if json.Unmarshal(value, &k) != nil {
		return time.Time{}
	}
	return k.Given
}

// Leads reports whether an address that somebody else would have a user open leads to
// where one of the clients sends its users, or to where they come back: a visit of
// somebody else would be theirs to complete. An address of which browsers may make
// another one leads there, too.
func (i *Issuer) Leads(address string) bool {
	to := placeOf(address)
	return slices.ContainsFunc(i.all(), func(u *Users) bool {
		return to == "" || to == placeOf(u.client.AuthorizeURL) || to == placeOf(u.client.RedirectURL)
	})
}

// placeOf returns scheme, host and path of an address, the same for every way to
// write them; "" of one that browsers may read in another way.
func placeOf(address string) string {
	u, err := url.Parse(address)
	if err != nil || strings.ContainsFunc(address, func(r rune) bool { return r <= ' ' || r == '\\' }) {
		return ""
	}
	if u.Scheme != "https" && u.Scheme != "http" {
		return u.Scheme + ":"
	}
	name := strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
	if name == "" || strings.ContainsFunc(name, func(r rune) bool { return r >= 0x80 }) {
		return ""
	}
	port := cmp.Or(u.Port(), map[string]string{"https": "443", "http": "80"}[u.Scheme])
	return u.Scheme + "://" + name + ":" + port + strings.ToLower(path.Clean("/"+u.Path))
}
