package worker

import (
	"slices"
)

// owner has the calls of one [scripting.Call.Owner]. The mutex of the admission guards its fields,
// with the exceptions below.
type owner struct {
	admission       *admission
	trusted, others queue
	calls           int // calls that have not ended, including those that wait for their host
	running         int
	waiting         int
	sheddable       int    // waiting calls that may be refused
	lastStart       uint64 // number of its last call that started
	offenses        offenses

	// inProcess counts the calls that have a process, and lastPlaced is the number of the last call
	// that waited for one. The mutex of the executor guards both.
	inProcess  int
	lastPlaced uint64
}

// owner returns the owner with an id. The caller holds mu.
func (a *admission) owner(id uint64, tick int64) *owner {
	if o := a.owners[id]; o != nil {
		return o
	}
	if len(a.owners) >= a.sweepAt {
		for id, o := range a.owners {
			if o.calls == 0 && !o.offenses.isRecent(tick) {
				delete(a.owners, id)
			}
		}
		a.sweepAt = 2*len(a.owners) + keptOwners
	}
	o := &owner{admission: a}
	o.trusted, o.others = newQueue(o, &a.trusted), newQueue(o, &a.others)
	a.owners[id] = o
	return o
}

// keptOwners is the number of owners above which owners without calls and recent offenses are
// dropped.
const keptOwners = 256

// queueFor returns the queue for calls of programs with a rating.
func (o *owner) queueFor(r rating) *queue {
	if r.isTrusted() {
		return &o.trusted
	}
	return &o.others
}

// next returns the queue with capacity and the oldest waiting call; nil if there is none.
func (o *owner) next() (next *queue) {
	for _, q := range [...]*queue{&o.trusted, &o.others} {
		if len(q.waiting) > 0 && q.hasCapacity() && (next == nil || q.waiting[0].since.Before(next.waiting[0].since)) {
			next = q
		}
	}
	return next
}

// precedes reports whether o gets a turn before another owner.
func (o *owner) precedes(other *owner) bool {
	if o.running != other.running {
		return o.running < other.running
	}
	return o.lastStart < other.lastStart
}

// share is the number of running calls that each owner may have.
func (o *owner) share(limit int) int {
	owners := o.admission.active
	if !o.isActive() {
		owners++ // its call makes it active
	}
	return max(limit/max(owners, 1), 1)
}

func (o *owner) isActive() bool { return o.running > 0 || o.waiting > 0 }

// count updates the numbers of running and waiting calls.
func (o *owner) count(computing, waiting int) {
	was := o.isActive()
	waited := o.waiting > 0
	o.running += computing
	o.waiting += waiting
	o.admission.waiting += waiting
	switch is := o.isActive(); {
	case is && !was:
		o.admission.active++
	case was && !is:
		o.admission.active--
	}
	switch waits := o.waiting > 0; {
	case waits && !waited:
		o.admission.waitingOwners = append(o.admission.waitingOwners, o)
	case waited && !waits:
		o.admission.waitingOwners = slices.DeleteFunc(o.admission.waitingOwners, func(other *owner) bool { return other == o })
	}
}

// shedLast refuses the last waiting call that may be refused, and reports whether there was one.
func (o *owner) shedLast() bool {
	var from *queue
	last := -1
	for _, q := range [...]*queue{&o.trusted, &o.others} {
		for i, c := range slices.Backward(q.waiting) {
			if !c.noShedding {
				if from == nil || c.since.After(from.waiting[last].since) {
					from, last = q, i
				}
				break
			}
		}
	}
	if from == nil {
		return false
	}
	from.shed(last)
	return true
}
