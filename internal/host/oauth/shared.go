package oauth

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/mcpd/mcpd/scripting"
)

// SharedVault is a vault that several replicas may share. Then they share the authorizations in
// progress, too, so that each step of one works at any replica.
type SharedVault interface {
	Vault
	// Authorizations returns the authorizations in progress of all replicas, or nil if the vault
	// is not shared.
	Authorizations() (Authorizations, error)
}

// Authorizations are encrypted values by locator, one for each user. A value is absent after it
// has expired. It is safe for concurrent use.
type Authorizations interface {
	// Locator returns the locator of a user: [LocatorLength] characters of base64url that do not
	// reveal the user.
	Locator(user string) string
	// Get returns a value, or nil.
	Get(locator string) ([]byte, error)
	// Change atomically replaces a value by the result of change, which may be called several
	// times; nil deletes it. If change fails, Change returns its error and nothing has changed.
	// If the store has no room, the error is [ErrNoRoom].
	Change(locator string, change func(old []byte, now time.Time) (value []byte, expires time.Time, err error)) error
	// Full reports whether no further authorization should start.
	Full() (bool, error)
	// Changed tells the other replicas that the authorization of a user has changed.
	Changed(user string)
}

// LocatorLength is the length of a locator. A shared state parameter begins with the locator.
const LocatorLength = 22

// ErrNoRoom is the error for an authorization that exceeds the bound of all replicas.
var ErrNoRoom = errors.New("too many authorizations are stored")

const (
	// leaseTimeout bounds the time in which one replica fetches or stores a token. If the replica
	// dies, the authorization expires, and the user can start again.
	leaseTimeout = time.Minute
	// sharedPoll is the interval in which a waiting call reads a shared authorization, in
	// addition to notifications.
	sharedPoll = 5 * time.Second
)

var (
	errUnchanged = errors.New("the authorization is in another stage")
	// errAgain: the state has changed meanwhile, and must be read again.
	errAgain = errors.New("the authorization has changed")
)

// sharedAuthorization is the stored form of an authorization. Replicas of other versions read
// it: the numbers of stages do not change.
//
// Each step is one [Authorizations].Change, so one replica makes it:
//
//	none → stageAtProvider                     joinAuthorization
//	     → stageReturned                       takeShared, for leaseTimeout
//	     → stageCodeShown, or failed stageDone showSharedCode
//	     → stageStoring, or failed stageDone   handleSharedAnswer, for leaseTimeout
//	     → none                                finishShared, after the vault has the token
//
// A drop of tokens removes the row at any step. The replica at work then gets errUnchanged, and
// removes the token that it has stored.
type sharedAuthorization struct {
	User        string         `json:"user"`
	DisplayName string         `json:"display_name"`
	State       []byte         `json:"state"` // its hash
	Verifier    string         `json:"verifier"`
	Page        []byte         `json:"page"`
	Stage       stage          `json:"stage"`
	Until       time.Time      `json:"until"`          // in the clock of the store
	Mark        string         `json:"mark,omitempty"` // shown beside the code
	Code        string         `json:"code,omitempty"`
	Attempts    int            `json:"attempts,omitempty"` // left
	Token       string         `json:"token,omitempty"`
	Life        time.Duration  `json:"life,omitempty"`
	Refresh     string         `json:"refresh,omitempty"`
	Failure     *sharedFailure `json:"failure,omitempty"`
}

// sharedFailure is the error of a failed authorization. Code is the code of a scripting.HostError,
// or "".
type sharedFailure struct {
	Code    string `json:"code,omitempty"`
	Message string `json:"message"`
}

func (f *sharedFailure) err() error {
	switch {
	case f == nil:
		return nil
	case f.Code != "":
		return &scripting.HostError{Code: f.Code, Message: f.Message}
	case f.Message == errNotAllowed.Error():
		return errNotAllowed
	case f.Message == errCode.Error():
		return errCode
	}
	return errors.New(f.Message)
}

// parseShared returns a stored authorization, or nil if there is none or another version stored it.
func parseShared(value []byte) *sharedAuthorization {
	var s sharedAuthorization
	if value == nil || json.Unmarshal(value, &s) != nil || s.User == "" || len(s.State) != sha256.Size {
		return nil
	}
	return &s
}

// AuthorizationUser returns the user of a value of [Authorizations], or "".
func AuthorizationUser(value []byte) string {
	if s := parseShared(value); s != nil {
		return s.User
	}
	return ""
}

// is reports whether the stored authorization is one with a state, and in a stage.
func (s *sharedAuthorization) is(state [sha256.Size]byte, at stage) bool {
	return s != nil && bytes.Equal(s.State, state[:]) && s.Stage == at
}

// fail ends the authorization. Waiting calls of all replicas get the error.
func (s *sharedAuthorization) fail(err error, now time.Time) {
	s.Stage, s.Until, s.Verifier, s.Code, s.Token, s.Refresh = stageDone, now.Add(authorizationTimeout), "", "", "", ""
	s.Failure = &sharedFailure{Message: err.Error()}
	if fault, ok := errors.AsType[*scripting.HostError](err); ok {
		s.Failure = &sharedFailure{Code: fault.Code, Message: fault.Message}
	}
}

// localCopy returns the copy of a stored authorization for this replica. The store decides when it
// expires; the copy has the time of its removal from memory.
func (u *UserTokens) localCopy(s *sharedAuthorization, locator string) *authorization {
	v := &authorization{
		caller: Caller{User: s.User, DisplayName: s.DisplayName}, verifier: s.Verifier, page: s.Page, state: [sha256.Size]byte(s.State), locator: locator,
		expires: u.broker.options.Now().Add(authorizationTimeout), stage: s.Stage, progress: make(chan struct{}), err: s.Failure.err(),
		token: token{value: s.Token, life: s.Life, refresh: s.Refresh}, code: s.Code, attemptsLeft: s.Attempts,
	}
	for i := range v.forms {
		v.forms[i] = u.client.form(s.Mark, i+1)
	}
	return v
}

// shared returns the authorizations of all replicas, or nil if this client does not share them:
// a user who returns to a port of this machine stays with this process.
func (u *UserTokens) shared() (Authorizations, error) {
	vault, ok := u.vault.(SharedVault)
	if !ok || !u.client.HasRemoteCallback() {
		return nil, nil
	}
	return vault.Authorizations()
}

// mutexOf returns the mutex that orders the accesses of this replica to one locator, so that its copy
// is never older than one that it has read.
func (u *UserTokens) mutexOf(locator string) *sync.Mutex { return &u.sharing[shardOf(locator)] }

// sync reads the authorization of a locator into memory. It returns nil if there is none.
func (u *UserTokens) sync(all Authorizations, locator string) (*sharedAuthorization, error) {
	locatorMu := u.mutexOf(locator)
	locatorMu.Lock()
	defer locatorMu.Unlock()
	value, err := all.Get(locator)
	if err != nil {
		return nil, err
	}
	s := parseShared(value)
	u.updateCopy(locator, s)
	return s, nil
}

// change changes the authorization of a locator at all replicas. The function gets nil if there
// is none, and returns nil to remove it; its time Until must be set. If it returns
// [errUnchanged], nothing changes.
func (u *UserTokens) change(all Authorizations, locator string, change func(s *sharedAuthorization, now time.Time) (*sharedAuthorization, error)) error {
	locatorMu := u.mutexOf(locator)
	locatorMu.Lock()
	defer locatorMu.Unlock()
	var user string
	var made *sharedAuthorization
	err := all.Change(locator, func(old []byte, now time.Time) ([]byte, time.Time, error) {
		before := parseShared(old)
		if before != nil {
			user = before.User
		}
		var err error
		if made, err = change(before, now); err != nil || made == nil {
			return nil, time.Time{}, err
		}
		user = made.User
		value, err := json.Marshal(made)
		return value, made.Until, err
	})
	if err != nil && (errors.Is(err, errUnchanged) || errors.Is(err, ErrNoRoom)) {
		return err
	}
	if err == nil {
		u.updateCopy(locator, made)
	}
	all.Changed(user) // after an error, too, as the change may have happened
	return err
}

// updateCopy makes the copy of this replica equal to what is stored.
func (u *UserTokens) updateCopy(locator string, s *sharedAuthorization) {
	u.mu.Lock()
	defer u.mu.Unlock()
	var current *authorization
	if s != nil {
		current = u.localCopy(s, locator)
	}
	for state, v := range u.authorizations {
		switch {
		case v.locator != locator:
		case current != nil && v.state == current.state:
			progress := v.stage != current.stage || v.attemptsLeft != current.attemptsLeft
			v.expires, v.err, v.token, v.code, v.attemptsLeft, v.forms = current.expires, current.err, current.token, current.code, current.attemptsLeft, current.forms
			if progress {
				u.advance(v, current.stage)
			}
			current = nil
		default:
			delete(u.authorizations, state)
			v.err, v.token = errNoCallback, token{}
			u.advance(v, stageDone)
		}
	}
	if current == nil || u.closed {
		return
	}
	for state, v := range u.authorizations { // makes room by removing any copies: their waiting calls wake, and read the store again
		if len(u.authorizations) < maxAuthorizations {
			break
		}
		delete(u.authorizations, state)
		u.advance(v, v.stage)
	}
	u.authorizations[current.state] = current
	u.scheduleCleanUp()
}
