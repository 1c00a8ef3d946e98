package oauth

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"
)

// tokenEntry is the cached state of a user: the stored token and its renewal state.
type tokenEntry struct {
	storedToken
	// failure is the error of the last renewal, or nil. There is no further attempt before
	// retryAt.
	failure error
	backoff time.Duration
	retryAt time.Time
}

// current returns the token, or the reason why there is none. ok is false if the token must be
// renewed or forgotten first.
func (e tokenEntry) current(now time.Time) (token string, ok bool, err error) {
	valid := now.Before(e.End)
	switch {
	case e.Access == "":
		return "", true, nil
	case e.Refresh == "":
		return e.Access, valid, nil
	case now.Before(e.Renew), valid && now.Before(e.retryAt):
		return e.Access, true, nil
	case now.Before(e.retryAt):
		return "", true, fmt.Errorf("%w (next attempt in %s)", e.failure, e.retryAt.Sub(now).Round(time.Second))
	}
	return "", false, nil
}

// load returns the state of a user. It reads the vault once, and does not wait for a renewal.
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

// remember caches what the vault held after the given number of drops, and returns the current
// state. It returns false if the vault must be read again.
func (u *UserTokens) remember(user string, h tokenEntry, drops uint64) (tokenEntry, bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if newer, known := u.cache[user]; known { // stored while the vault was read
		return newer, true
	}
	if u.dropCount != drops {
		return tokenEntry{}, false
	}
	u.cacheEntry(user, h)
	return h, true
}

// cacheEntry caches the state of a user. The caller holds mu.
func (u *UserTokens) cacheEntry(user string, h tokenEntry) {
	if len(u.cache) >= maxCached {
		clear(u.cache)
	}
	u.cache[user] = h
}

// storeFirst stores the first token of a user, unless the authorization has ended. It is
// audited first: without an audit record the token is not stored.
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
	drops := u.drops()
	k, value := u.newStored(got, storedToken{Given: u.broker.options.Now()})
	if err := u.vault.Put(v.caller.User, value); err != nil {
		u.broker.options.OnTokenLost(u.key, v.caller.User, LossNotStored)
		return err
	}
	if v.locator != "" {
		if err := u.finishShared(v); err != nil { // perhaps it was dropped, so the token must not stay
			u.broker.options.OnTokenLost(u.key, v.caller.User, LossNotStored)
			_, _ = u.vault.Replace(v.caller.User, nil, k.isIn)
			return err
		}
	}
	u.cacheNew(v.caller.User, k, drops)
	return nil
}

// replace replaces a token by the next one. If the token was dropped in the meantime, it
// returns false, and the vault has the current state.
func (u *UserTokens) replace(user string, got token, before storedToken) (bool, error) {
	u.storeMu.Lock()
	defer u.storeMu.Unlock()
	drops := u.drops()
	k, value := u.newStored(got, before)
	there, err := u.vault.Replace(user, value, before.isIn)
	if err != nil {
		return false, err
	}
	if !there {
		u.mu.Lock()
		delete(u.cache, user)
		u.mu.Unlock()
		return false, nil
	}
	u.cacheNew(user, k, drops)
	return true, nil
}

// newStored returns the stored form of a token, and its encoding. Without a new refresh token
// the previous one stays.
func (u *UserTokens) newStored(got token, before storedToken) (storedToken, []byte) {
	now := u.broker.options.Now()
	end := now.Add(got.life)
	k := storedToken{Given: before.Given, Access: got.value, Refresh: cmp.Or(got.refresh, before.Refresh), Renew: end.Add(-min(renewBefore, got.life/10)), End: end, Stored: now}
	// Plain data always encodes.
	value, _ := json.Marshal(k)
	return k, value
}

// isIn reports whether a value of a vault is the token.
func (k storedToken) isIn(value []byte) bool {
	var is storedToken
	return json.Unmarshal(value, &is) == nil && is.Access == k.Access && is.Refresh == k.Refresh
}

func (u *UserTokens) drops() uint64 {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.dropCount
}

// cacheNew caches a token that was stored after the given number of drops. After further drops, the
// vault must be read.
func (u *UserTokens) cacheNew(user string, k storedToken, drops uint64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.dropCount != drops {
		delete(u.cache, user)
		return
	}
	u.cacheEntry(user, tokenEntry{storedToken: k})
}

// forget removes an unusable token and reports why. If another one was stored in the meantime,
// here or by another server with the same vault, it stays and is returned.
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
	value, err := u.vault.Get(user)
	if err == nil && k.isIn(value) {
		u.broker.options.OnTokenLost(u.key, user, why)
		var there bool
		if there, err = u.vault.Replace(user, nil, k.isIn); there || err != nil {
			return "", err
		}
	}
	u.mu.Lock()
	delete(u.cache, user)
	u.mu.Unlock()
	if err != nil {
		return "", err
	}
	now, err := u.load(user)
	return now.Access, err
}

// recordFailure records why a token could not be renewed, if the user is still cached.
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

// ReportUnauthorized reports that a host rejected the token of the caller in ctx (see
// [WithCaller]); it may have been revoked. The token is renewed on next use. If it cannot be
// renewed it is dropped, and the user is prompted again. Hosts could reject at will, so a token
// is not doubted within a minute after it was stored.
func (u *UserTokens) ReportUnauthorized(ctx context.Context) {
	who, _ := ctx.Value(callerKey{}).(Caller)
	u.mu.Lock()
	defer u.mu.Unlock()
	h, known := u.cache[who.User]
	now := u.broker.options.Now()
	switch {
	case !known || now.Sub(h.Stored) < minDoubtInterval:
		return
	case h.Refresh == "":
		h.End = now
	case now.Before(h.Renew):
		h.Renew = now
	}
	u.cache[who.User] = h
}

// Drop drops the tokens of the matching users, in the vault too, and returns these users. No
// dropped token is used afterwards. Renewals and authorizations in progress store nothing;
// their users start over.
func (u *UserTokens) Drop(of func(user string) bool) (dropped []string, err error) {
	u.storeMu.Lock()
	defer u.storeMu.Unlock()
	for _, user := range u.forgetUsers(of) {
		dropped = append(dropped, user)
		err = errors.Join(err, u.vault.Put(user, nil))
	}
	return dropped, err
}

// forgetUsers removes users from the cache, and returns those that had a token.
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

// Reload makes the next calls of the matching users read the vault, which another server has changed.
// If that dropped their tokens, their authorizations in progress end; shared ones are read again.
func (u *UserTokens) Reload(of func(user string) bool, dropped bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.dropCount++
	maps.DeleteFunc(u.cache, func(user string, _ tokenEntry) bool { return of(user) })
	for _, v := range u.authorizations {
		switch {
		case !of(v.caller.User):
		case v.locator != "":
			u.advance(v, v.stage) // waiting calls read it again; it was dropped in the store
		case dropped && v.stage != stageDone:
			u.end(v, errNoCallback)
		}
	}
}

// TokenCreatedAt returns when the user gave consent, from a value of a vault; zero if it does
// not say.
func TokenCreatedAt(value []byte) time.Time {
	var k storedToken
	if json.Unmarshal(value, &k) != nil {
		return time.Time{}
	}
	return k.Given
}

// IsOwnURL reports whether an address is an authorization or redirect URL of a client. A script
// must not send a user there, because they could complete another user's authorization. The
// result is also true for an address that browsers may interpret differently.
func (b *Broker) IsOwnURL(address string) bool {
	to := canonicalLocation(address)
	return slices.ContainsFunc(b.clients(), func(u *UserTokens) bool {
		return to == "" || to == canonicalLocation(u.client.AuthorizeURL) || to == canonicalLocation(u.client.RedirectURL)
	})
}

// canonicalLocation returns the scheme, host and path of an address in canonical form, or "" if
// browsers may interpret it differently.
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
