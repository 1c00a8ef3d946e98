package oauth

import (
	"encoding/json"
	"errors"
	"time"
)

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
