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
type tokenEntry struct {
	storedToken
	// came is when the token came; the zero time of one that the vault had.
	storedAt time.Time
	// failure is why the token could not be renewed, nil when it could; nobody asks
	// again before retry.
	failure error
	backoff time.Duration
	retryAt time.Time
}

// atHand returns the token, or why there is none, unless somebody has to renew or to
// forget it first.
func (h tokenEntry) current(now time.Time) (token string, ok bool, err error) {
	lasts := now.Before(h.End)
	switch {
	case h.Access == "":
		return "", true, nil
	case h.Refresh == "":
		return h.Access, lasts, nil
	case now.Before(h.Renew), lasts && now.Before(h.retryAt):
		return h.Access, true, nil
	case now.Before(h.retryAt):
		return "", true, fmt.Errorf("%w (it is asked again in %s)", h.failure, h.retryAt.Sub(now).Round(time.Second))
	}
	return "", false, nil
}

// recall returns what is known of a user, of whom the vault is asked once. It waits
// for nobody who renews.
func (u *UserTokens) load(user string) (tokenEntry, error) {
	for {
		u.mu.Lock()
		h, known := u.cache[user]
		drops := u.dropCount
		u.mu.Unlock()
		if known {
			return h, nil
		}
		value, err := u.vault.Get(user)
		if err != nil {
			return tokenEntry{}, err
		}
		if value != nil && json.Unmarshal(value, &h.storedToken) != nil {
			h = tokenEntry{}
		}
		if h, read := u.remember(user, h, drops); read {
			return h, nil
		}
	}
}

// remember takes up what the vault had of a user when so many drops had been, and
// returns what there is. It reports false when the vault must be asked again.
func (u *UserTokens) remember(user string, h tokenEntry, drops uint64) (tokenEntry, bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if newer, known := u.cache[user]; known { // it was kept while the vault was read
		return newer, true
	}
	if u.dropCount != drops {
		return tokenEntry{}, false
	}
	u.cacheEntry(user, h)
	return h, true
}

// know remembers what there is of a user; mu is held.
func (u *UserTokens) cacheEntry(user string, h tokenEntry) {
	if len(u.cache) >= maxCached {
		clear(u.cache)
	}
	u.cache[user] = h
}

// join keeps the first token of the user of a visit, unless that was ended meanwhile. It
// is told of before: what cannot be told of is not kept.
func (u *UserTokens) storeFirst(v *authorization, got token) error {
	u.storeMu.Lock()
	defer u.storeMu.Unlock()
	u.mu.Lock()
	ended := v.stage == stageDone
	u.mu.Unlock()
	if ended {
		return errNoCallback
	}
	if err := u.broker.options.OnTokenAdded(u.key, v.caller.User); err != nil {
		return err
	}
	k, value := u.newStored(got, storedToken{Given: u.broker.options.Now()})
	if err := u.vault.Put(v.caller.User, value); err != nil {
		u.broker.options.OnTokenLost(u.key, v.caller.User, LossNotStored)
		return err
	}
	u.cacheNew(v.caller.User, k)
	return nil
}

// replace keeps the token that comes after another one, unless that is not there any
// more, as it was dropped: then it reports false, and the vault knows what there is.
func (u *UserTokens) replace(user string, got token, before storedToken) (bool, error) {
	u.storeMu.Lock()
	defer u.storeMu.Unlock()
	k, value := u.newStored(got, before)
	there, err := u.vault.Replace(user, value, func(old []byte) bool {
		var is storedToken
		return json.Unmarshal(old, &is) == nil && is.Access == before.Access && is.Refresh == before.Refresh
	})
	if err != nil {
		return false, err
	}
	if !there {
		u.mu.Lock()
		delete(u.cache, user)
		u.mu.Unlock()
		return false, nil
	}
	u.cacheNew(user, k)
	return true, nil
}

// made returns what is kept of a token, and as bytes. A server that gives no other
// refresh token means the one of before.
func (u *UserTokens) newStored(got token, before storedToken) (storedToken, []byte) {
	end := u.broker.options.Now().Add(got.life)
	k := storedToken{Given: before.Given, Access: got.value, Refresh: cmp.Or(got.refresh, before.Refresh), Renew: end.Add(-min(renewBefore, got.life/10)), End: end}
	// Plain data always encodes.
	value, _ := json.Marshal(k)
	return k, value
}

// take remembers what has just come of a user.
func (u *UserTokens) cacheNew(user string, k storedToken) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.cacheEntry(user, tokenEntry{storedToken: k, storedAt: u.broker.options.Now()})
}

// forget takes a token away that is of no use any more, and tells why. When another one
// has come meanwhile, it stays and is returned.
func (u *UserTokens) forget(user string, k storedToken, why LossReason) (string, error) {
	u.storeMu.Lock()
	defer u.storeMu.Unlock()
	u.mu.Lock()
	newer := u.cache[user]
	same := newer.Access == k.Access && newer.Refresh == k.Refresh
	if same {
		u.cacheEntry(user, tokenEntry{})
	}
	u.mu.Unlock()
	if !same {
		return newer.Access, nil
	}
	u.broker.options.OnTokenLost(u.key, user, why)
	return "", u.vault.Put(user, nil)
}

// failed remembers why the token of a user could not be renewed, if anything is
// known of them still.
func (u *UserTokens) recordFailure(user string, why error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	h, known := u.cache[user]
	if !known {
		return
	}
	h.failure, h.backoff = why, nextBackoff(h.backoff)
	h.retryAt = u.broker.options.Now().Add(h.backoff)
	u.cache[user] = h
}

// Refused says that a host did not accept the token of the caller of the context
// (see [For]), which may have been taken back: it is renewed when it is needed
// again, or forgotten where it cannot be, so that the user is asked. As whoever
// refuses may do so at will, no token is doubted for a minute after it came.
func (u *UserTokens) ReportUnauthorized(ctx context.Context) {
	who, _ := ctx.Value(callerKey{}).(Caller)
	u.mu.Lock()
	defer u.mu.Unlock()
	h, known := u.cache[who.User]
	now := u.broker.options.Now()
	switch {
	case !known || now.Sub(h.storedAt) < minDoubtInterval:
		return
	case h.Refresh == "":
		h.End = now
	case now.Before(h.Renew):
		h.Renew = now
	}
	u.cache[who.User] = h
}

// Drop forgets the tokens of the users of whom the function says so, in the vault too,
// and returns whose it has forgotten: none of them is given to anyone from then on. What
// was being renewed, or was about to be joined to such a user, is not kept either; who
// is on the way starts over.
func (u *UserTokens) Drop(of func(user string) bool) (dropped []string, err error) {
	u.storeMu.Lock()
	defer u.storeMu.Unlock()
	for _, user := range u.forgetUsers(of) {
		dropped = append(dropped, user)
		err = errors.Join(err, u.vault.Put(user, nil))
	}
	return dropped, err
}

// disown forgets what is known of users, and returns who had a token.
func (u *UserTokens) forgetUsers(of func(user string) bool) (had []string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.dropCount++
	for user, h := range u.cache {
		if !of(user) {
			continue
		}
		if h.Access != "" {
			had = append(had, user)
		}
		u.cache[user] = tokenEntry{}
	}
	for _, v := range u.authorizations {
		if v.stage != stageDone && of(v.caller.User) {
			u.end(v, errNoCallback)
		}
	}
	return had
}

// Given returns when a user let a client have what a vault keeps of them; the zero
// time where it does not say.
func TokenCreatedAt(value []byte) time.Time {
	var k storedToken
	if json.Unmarshal(value, &k) != nil {
		return time.Time{}
	}
	return k.Given
}

// Leads reports whether an address that somebody else would have a user open leads to
// where one of the clients sends its users, or to where they come back: a visit of
// somebody else would be theirs to complete. An address of which browsers may make
// another one leads there, too.
func (i *Broker) IsOwnURL(address string) bool {
	to := canonicalLocation(address)
	return slices.ContainsFunc(i.clients(), func(u *UserTokens) bool {
		return to == "" || to == canonicalLocation(u.client.AuthorizeURL) || to == canonicalLocation(u.client.RedirectURL)
	})
}

// placeOf returns scheme, host and path of an address, the same for every way to
// write them; "" of one that browsers may read in another way.
func canonicalLocation(address string) string {
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
