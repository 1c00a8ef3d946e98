package state

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Status is the status of a task.
type Status string

// A task starts as Working, and ends as Completed, Failed or Cancelled.
const (
	Working       Status = "working"
	InputRequired Status = "input_required"
	Completed     Status = "completed"
	Failed        Status = "failed"
	Cancelled     Status = "cancelled"
)

// statuses lists all statuses, in the order of their numbers in files.
var statuses = [...]Status{Working, InputRequired, Completed, Failed, Cancelled}

// Ended reports whether the status is final.
func (s Status) Ended() bool { return s == Completed || s == Failed || s == Cancelled }

// Task is a call with a result to be fetched later. The store sets the fields up to
// Created, and Updated; changes of them are ignored.
type Task struct {
	// ID cannot be guessed.
	ID      string
	Owner   Owner
	Tool    string
	Created time.Time
	Updated time.Time
	// Runner names the process that runs a task with the status Working, if several
	// share the store; otherwise it is empty. The store sets it, and does not encode it.
	Runner string

	Status Status
	// Message is a text about the status.
	Message string
	// TTL is the lifetime of the task from its creation.
	TTL time.Duration
	// Poll is the recommended polling interval for the client.
	Poll time.Duration
	// Requests are the open input requests, and Held is the state to continue with.
	// Both are empty once the task has ended.
	Requests, Held []byte
	// Result is the result of a completed task, or the error of a failed one.
	Result []byte
}

// restarted is the message of tasks that a restart has ended.
const restarted = "the server was restarted while the task ran, and its effects are unknown; check before you repeat the call"

func (s *store) CreateTask(t Task) (Task, error) {
	unlock, err := s.open()
	if err != nil {
		return Task{}, err
	}
	defer unlock()
	t = NewTask(t, s.now())
	return t, s.writeTask(t)
}

// NewTask returns the task that [Store.CreateTask] stores for t.
func NewTask(t Task, now time.Time) Task {
	now = now.Truncate(time.Millisecond).UTC()
	return Task{
		ID: rand.Text(), Owner: t.Owner, Tool: t.Tool, Created: now, Updated: now,
		Status: Working, Message: t.Message, TTL: t.TTL, Poll: t.Poll,
	}
}

// writeTask stores a task; mu is held.
func (s *store) writeTask(t Task) error {
	r, err := t.Record()
	if err != nil {
		return err
	}
	return s.write(r.Entry, r.Data)
}

func (s *store) Task(owner Owner, id string) (Task, error) {
	unlock, err := s.open()
	if err != nil {
		return Task{}, err
	}
	defer unlock()
	return s.task(owner, id)
}

func (s *store) Tasks(most int) ([]Task, error) {
	unlock, err := s.open()
	if err != nil {
		return nil, err
	}
	defer unlock()
	var entries []Entry
	for _, e := range s.ledgers[TaskKind].entries {
		if e.Expires > s.millis() {
			entries = append(entries, e)
		}
	}
	slices.SortFunc(entries, func(a, b Entry) int {
		return cmp.Or(cmp.Compare(b.Expires, a.Expires), strings.Compare(a.ID, b.ID))
	})
	var tasks []Task
	for _, e := range entries[:min(len(entries), most)] {
		if t, err := s.readTask(e); err == nil {
			tasks = append(tasks, t.Summary())
		}
	}
	return tasks, nil
}

// Summary returns the task without its requests, state and result.
func (t Task) Summary() Task {
	t.Requests, t.Held, t.Result = nil, nil, nil
	return t
}

// task reads a task of an owner; mu is held.
func (s *store) task(owner Owner, id string) (Task, error) {
	e, ok := s.find(TaskKind, id)
	if !ok || e.Owner != owner.Key() {
		return Task{}, ErrNotFound
	}
	return s.readTask(e)
}

// readTask reads a task; mu is held.
func (s *store) readTask(e Entry) (Task, error) {
	data, err := s.read(e)
	if err != nil {
		return Task{}, err
	}
	return DecodeTask(e.ID, data)
}

// DecodeTask returns the task in the data of a record.
func DecodeTask(id string, data []byte) (Task, error) {
	t := Task{ID: id}
	if err := t.decode(data); err != nil {
		return Task{}, fmt.Errorf("read a task: %w", err)
	}
	return t, nil
}

func (s *store) UpdateTask(owner Owner, id string, change func(*Task) error) (Task, error) {
	unlock, err := s.open()
	if err != nil {
		return Task{}, err
	}
	defer unlock()
	old, err := s.task(owner, id)
	if err != nil {
		return Task{}, err
	}
	t, err := old.Changed(change, s.now())
	if err != nil {
		return old, err
	}
	if err := s.writeTask(t); err != nil {
		return old, err
	}
	s.notify(id)
	return t, nil
}

// Changed returns the task after a change, as [Store.UpdateTask] stores it. The error is
// [ErrEnded] for an ended task, or the error of change.
func (t Task) Changed(change func(*Task) error, now time.Time) (Task, error) {
	if t.Status.Ended() {
		return t, ErrEnded
	}
	old := t
	if err := change(&t); err != nil {
		return old, err
	}
	t.keep(old, now.Truncate(time.Millisecond).UTC())
	return t, nil
}

// Interrupted returns the task after the process that ran it has ended. ok is false if
// the task can continue, or has ended.
func (t Task) Interrupted(now time.Time) (_ Task, ok bool) {
	if t.Status.Ended() || t.Status == InputRequired && len(t.Held) > 0 {
		return t, false
	}
	old := t
	t.Status, t.Message = Failed, restarted
	t.keep(old, now.Truncate(time.Millisecond).UTC())
	return t, true
}

// keep sets the fields that the store owns, and clears the fields of an ended task.
func (t *Task) keep(old Task, now time.Time) {
	t.ID, t.Owner, t.Tool, t.Created, t.Updated, t.Runner = old.ID, old.Owner, old.Tool, old.Created, now, old.Runner
	if t.Status.Ended() {
		t.Requests, t.Held = nil, nil
	}
}

// failTasks fails the tasks that an earlier process was running, and waiting tasks that
// cannot continue.
func (s *store) failTasks() error {
	var failed []Record
	for _, e := range s.ledgers[TaskKind].entries {
		if e.Phase < 0 || e.Phase >= len(statuses) {
			return fmt.Errorf("read a task: %w", errMalformed)
		}
		if statuses[e.Phase].Ended() {
			continue
		}
		r, ok, err := s.cutOff(e)
		if err != nil {
			return err
		}
		if ok {
			failed = append(failed, r)
		}
	}
	if len(failed) == 0 {
		return nil
	}
	if err := s.rows.Put(failed...); err != nil {
		return s.failed(TaskKind, err)
	}
	for _, r := range failed {
		s.ledgers[TaskKind].set(r.Entry)
	}
	return nil
}

// cutOff returns the record of a task that a restart has ended; ok is false if the task
// can continue.
func (s *store) cutOff(e Entry) (r Record, ok bool, err error) {
	t, err := s.readTask(e)
	if err != nil {
		return Record{}, false, err
	}
	if t, ok = t.Interrupted(s.now()); !ok {
		return Record{}, false, nil
	}
	r, err = t.Record()
	return r, err == nil, err
}

// Record returns the stored form of the task.
func (t Task) Record() (Record, error) {
	status := slices.Index(statuses[:], t.Status)
	if status < 0 {
		return Record{}, fmt.Errorf("%q is not a task status", string(t.Status))
	}
	if t.TTL <= 0 {
		return Record{}, errors.New("a task needs a TTL")
	}
	var data encoder
	t.encode(&data)
	e := Entry{Kind: TaskKind, ID: t.ID, Owner: t.Owner.Key(), Phase: status, Expires: t.Created.Add(t.TTL).UnixMilli()}
	return NewRecord(e, data), nil
}

// taskVersion is the version of the format in files.
const taskVersion = 1

func (t Task) encode(e *encoder) {
	e.uint(taskVersion)
	e.owner(t.Owner)
	e.string(t.Tool)
	e.millis(t.Created)
	e.millis(t.Updated)
	e.uint(uint64(max(slices.Index(statuses[:], t.Status), 0)))
	e.string(t.Message)
	e.span(t.TTL)
	e.span(t.Poll)
	e.bytes(t.Requests)
	e.bytes(t.Held)
	e.bytes(t.Result)
}

// decode decodes all fields except ID.
func (t *Task) decode(data []byte) error {
	d := decoder{data: bytes.Clone(data)}
	version := d.uint()
	t.Owner, t.Tool, t.Created, t.Updated = d.owner(), d.string(), d.millis(), d.millis()
	status := d.small()
	t.Message, t.TTL, t.Poll = d.string(), d.span(), d.span()
	t.Requests, t.Held, t.Result = d.bytes(), d.bytes(), d.bytes()
	if err := d.end(); err != nil || version != taskVersion || status >= len(statuses) {
		return errMalformed
	}
	t.Status = statuses[status]
	return nil
}

func (s *store) WatchTask(owner Owner, id string) (changes <-chan struct{}, stop func(), err error) {
	unlock, err := s.open()
	if err != nil {
		return nil, nil, err
	}
	defer unlock()
	e, ok := s.find(TaskKind, id)
	if !ok || e.Owner != owner.Key() {
		return nil, nil, ErrNotFound
	}
	watch := make(chan struct{}, 1)
	if s.watches[id] == nil {
		s.watches[id] = map[chan struct{}]bool{}
	}
	s.watches[id][watch] = true
	return watch, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.watches[id], watch)
		if len(s.watches[id]) == 0 {
			delete(s.watches, id)
		}
	}, nil
}

// notify notifies all watchers of a task; mu is held.
func (s *store) notify(id string) {
	for watch := range s.watches[id] {
		select {
		case watch <- struct{}{}:
		default: // the pending notification covers this change
		}
	}
}

// unwatch closes the channels of all watchers of a removed task; mu is held.
func (s *store) unwatch(id string) {
	for watch := range s.watches[id] {
		close(watch)
	}
	delete(s.watches, id)
}
