package worker

import (
	"slices"
)

// owner has the calls of one [scripting.Call.Owner]. What is not
// said to be guarded otherwise is guarded by the mutex of the admission.
type owner struct {
	admission       *admission
	trusted, others queue
	calls           int // that have not ended, those that wait for their host too
	running         int
	waiting         int
	sheddable       int    // those that wait and may be refused
	lastStart       uint64 // the number of its last call that has begun
	offences        offences

	// inProcess counts the calls that have a process, and placed is the number of the last
	// that waited for one. Both are guarded by the mutex of the executor.
	inProcess  int
	lastPlaced uint64
}

// owner returns the owner with an id, at a look. The caller holds mu.
func (a *admission) owner(id uint64, look int64) *owner {
	if o := a.owners[id]; o != nil {
		return o
	}
	if len(a.owners) >= a.sweepAt {
		for id, o := range a.owners {
			if o.calls == 0 && !o.offences.isRecent(look) {
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

// keptOwners is how many owners are kept before those are dropped that have neither calls
// nor recent offences: what is known of their calls is lost.
const keptOwners = 256

// lane returns the one for the calls of programs with a record.
func (o *owner) queueFor(r rating) *queue {
	if r.isTrusted() {
		return &o.trusted
	}
	return &o.others
}

// next returns the lane whose first call has waited longest, of those that have room
// for one; nil when none has.
func (o *owner) next() (next *queue) {
	for _, l := range [...]*queue{&o.trusted, &o.others} {
		if len(l.waiting) > 0 && l.hasCapacity() && (next == nil || l.waiting[0].since.Before(next.waiting[0].since)) {
			next = l
		}
	}
	return next
}

// before reports whether a turn is due to o before another owner.
func (o *owner) precedes(other *owner) bool {
	if o.running != other.running {
		return o.running < other.running
	}
	return o.lastStart < other.lastStart
}

// share is how many of the calls that may compute are due to each owner.
func (o *owner) share(most int) int {
	owners := o.admission.active
	if !o.isActive() {
		owners++ // its call makes it so
	}
	return max(most/max(owners, 1), 1)
}

func (o *owner) isActive() bool { return o.running > 0 || o.waiting > 0 }

// change notes that so many calls more compute and wait.
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

// refuseLast refuses the call that came last of those that wait and may be refused. It
// reports whether there was one.
func (o *owner) shedLast() bool {
	var from *queue
	last := -1
	for _, l := range [...]*queue{&o.trusted, &o.others} {
		for i, t := range slices.Backward(l.waiting) {
			if !t.noShedding {
				if from == nil || t.since.After(from.waiting[last].since) {
					from, last = l, i
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
