package oauth

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/http"
	"time"
)

// The steps of a [sharedAuthorization], each at any replica.

// joinAuthorization returns the shared authorization of a caller, its stage (stageSent for one that
// this call started), and a channel that is closed on progress. It starts one if there is none. After
// errAgain, the caller calls again.
func (u *UserTokens) joinAuthorization(all Authorizations, who Caller) (v *authorization, at stage, further <-chan struct{}, err error) {
	locator := all.Locator(who.User)
	s, err := u.sync(all, locator)
	if err != nil {
		return nil, stageSent, nil, err
	}
	u.mu.Lock()
	err = u.admit(true)
	u.mu.Unlock()
	if err != nil {
		return nil, stageSent, nil, err
	}
	var started [sha256.Size]byte
	if s == nil || s.Stage == stageDone && !who.Prompted {
		if there, err := u.reload(who.User); err != nil || there {
			return nil, stageSent, nil, cmp.Or[error](err, errAgain)
		}
		if full, err := all.Full(); err != nil || full {
			return nil, stageSent, nil, cmp.Or[error](err, errTooManyAuthorizations)
		}
		mine, state := u.newSharedAuthorization(who, locator)
		err := u.change(all, locator, func(s *sharedAuthorization, now time.Time) (*sharedAuthorization, error) {
			if s != nil && (s.Stage != stageDone || who.Prompted) {
				return nil, errUnchanged
			}
			return &sharedAuthorization{User: who.User, DisplayName: who.DisplayName, State: state[:], Verifier: mine.verifier, Page: mine.page, Stage: stageAtProvider, Until: now.Add(authorizationTimeout)}, nil
		})
		switch {
		case errors.Is(err, errUnchanged):
			return nil, stageSent, nil, errAgain
		case errors.Is(err, ErrNoRoom):
			return nil, stageSent, nil, errTooManyAuthorizations
		case err != nil:
			return nil, stageSent, nil, err
		}
		started = state
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, v := range u.authorizations {
		switch {
		case v.locator != locator:
		case v.state == started:
			return v, stageSent, v.progress, nil
		default:
			return v, v.stage, v.progress, nil
		}
	}
	return nil, stageSent, nil, errAgain
}

// reload reads the token of a user again, and reports whether there is one: another replica may
// have stored it before it removed the authorization.
func (u *UserTokens) reload(user string) (bool, error) {
	u.mu.Lock()
	if u.cache[user].Access == "" {
		delete(u.cache, user)
	}
	u.mu.Unlock()
	h, err := u.load(user)
	return h.Access != "", err
}

// takeShared is takeState for shared authorizations: one replica gets it.
func (u *UserTokens) takeShared(all Authorizations, text string) (*authorization, error) {
	if len(text) != LocatorLength+stateLength {
		return nil, nil
	}
	locator, state := text[:LocatorLength], sha256.Sum256([]byte(text))
	if _, err := base64.RawURLEncoding.DecodeString(locator); err != nil {
		return nil, nil
	}
	if s, err := u.sync(all, locator); err != nil || !s.is(state, stageAtProvider) {
		return nil, err
	}
	var v *authorization
	err := u.change(all, locator, func(s *sharedAuthorization, now time.Time) (*sharedAuthorization, error) {
		if !s.is(state, stageAtProvider) {
			return nil, errUnchanged
		}
		s.Stage, s.Until = stageReturned, now.Add(leaseTimeout)
		v = u.localCopy(s, locator)
		return s, nil
	})
	switch {
	case errors.Is(err, errUnchanged):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return v, nil
}

// showSharedCode ends the callback of a shared authorization, after the token was fetched or not.
func (u *UserTokens) showSharedCode(v *authorization, got token, fetched error) (status int, page string) {
	all, err := u.shared()
	if err != nil || all == nil {
		return http.StatusServiceUnavailable, pageLost
	}
	mark, code := rand.Text()[:4], newCode()
	err = u.change(all, v.locator, func(s *sharedAuthorization, now time.Time) (*sharedAuthorization, error) {
		if !s.is(v.state, stageReturned) {
			return nil, errUnchanged
		}
		if fetched != nil {
			s.fail(fetched, now)
			return s, nil
		}
		s.Stage, s.Until, s.Mark, s.Code, s.Attempts = stageCodeShown, now.Add(authorizationTimeout), mark, code, maxCodeAttempts
		s.Verifier, s.Token, s.Life, s.Refresh = "", got.value, got.life, got.refresh
		return s, nil
	})
	switch {
	case errors.Is(err, errUnchanged): // ended in the meantime
		return http.StatusBadRequest, pageUnknown
	case err != nil:
		return http.StatusServiceUnavailable, pageLost
	case fetched != nil:
		return http.StatusForbidden, pageRefused
	}
	return http.StatusOK, u.codePage(&authorization{caller: v.caller, code: code}, mark)
}

// mayBePrompt reports whether parameters may be a prompt of a client, so that it is worth
// reading the authorizations.
func mayBePrompt(params []byte) bool {
	return bytes.Contains(params, []byte(`"elicitationId"`)) || bytes.Contains(params, []byte(formInstruction))
}

// syncPrompt reads the authorization of a user for whom parameters may be a prompt.
func (u *UserTokens) syncPrompt(user string, params []byte) (Authorizations, error) {
	if user == "" || !mayBePrompt(params) {
		return nil, nil
	}
	all, err := u.shared()
	if err == nil && all != nil {
		_, err = u.sync(all, all.Locator(user))
	}
	return all, err
}

// handleSharedAnswer is handleAnswer for shared authorizations.
func (u *UserTokens) handleSharedAnswer(all Authorizations, user string, params []byte, a PromptAnswer) {
	u.mu.Lock()
	v, code := u.findPrompt(user, params)
	u.mu.Unlock()
	if v == nil || v.locator == "" || !code && a.Accepted {
		return
	}
	expected := stageAtProvider
	if code {
		expected = stageCodeShown
	}
	var got token
	var right bool
	err := u.change(all, v.locator, func(s *sharedAuthorization, now time.Time) (*sharedAuthorization, error) {
		if !s.is(v.state, expected) {
			return nil, errUnchanged
		}
		got, right = token{value: s.Token, life: s.Life, refresh: s.Refresh}, a.Accepted && (&authorization{code: s.Code}).checkCode(a.Code)
		switch s.Attempts--; {
		case right:
			s.Stage, s.Until = stageStoring, now.Add(leaseTimeout)
			s.Token, s.Refresh, s.Code = "", "", ""
		case !a.Accepted:
			s.fail(errNotAllowed, now)
		case s.Attempts <= 0:
			s.fail(errCode, now)
		}
		return s, nil
	})
	if err != nil || !right { // after an error the call asks again, or fails
		return
	}
	if err := u.storeFirst(v, got); err != nil {
		_ = u.change(all, v.locator, func(s *sharedAuthorization, now time.Time) (*sharedAuthorization, error) {
			if !s.is(v.state, stageStoring) {
				return nil, errUnchanged
			}
			if errors.Is(err, errNoCallback) {
				return nil, nil
			}
			s.fail(err, now)
			return s, nil
		})
	}
}

// finishShared removes a shared authorization whose token was stored. The error is errNoCallback if
// another replica has dropped it.
func (u *UserTokens) finishShared(v *authorization) error {
	all, err := u.shared()
	if err == nil && all != nil {
		err = u.change(all, v.locator, func(s *sharedAuthorization, _ time.Time) (*sharedAuthorization, error) {
			if !s.is(v.state, stageStoring) {
				return nil, errNoCallback
			}
			return nil, nil
		})
	}
	return err
}
