package worker

import "time"

// meter measures what calls cost: for how long all processors work from the end of
// one to that of the next. While fewer calls compute than there are processors,
// time counts in part.
type meter struct {
	// fixed at creation
	processors int
	window     int // of how many calls it is known what they cost

	computing int
	at        time.Time       // of the last change
	worked    time.Duration   // until then
	ends      []time.Duration // how much was worked at each of the last, and the one before them
	next      int             // which of these is overwritten next
}

// change notes that so many calls more compute from now on.
func (m *meter) change(now time.Time, by int) {
	m.worked = m.until(now)
	m.at = now
	m.computing += by
}

// until returns how much was worked until now.
func (m *meter) until(now time.Time) time.Duration {
	return m.worked + now.Sub(m.at)*time.Duration(min(m.computing, m.processors))/time.Duration(m.processors)
}

// ended notes that a call has ended, or waits, after the change that this makes.
func (m *meter) ended() {
	if len(m.ends) <= m.window {
		m.ends = append(m.ends, m.worked)
		return
	}
	m.ends[m.next] = m.worked
	m.next = (m.next + 1) % len(m.ends)
}

// measured returns of how many calls it is known what they cost.
func (m *meter) measured() int { return max(len(m.ends)-1, 0) }

// cost returns what the last calls cost on average, up to now: so many, or as
// many as are known.
func (m *meter) cost(now time.Time, calls int) time.Duration {
	calls = min(calls, m.measured())
	if calls == 0 {
		return 0
	}
	before := (m.next + len(m.ends) - calls - 1) % len(m.ends)
	return (m.until(now) - m.ends[before]) / time.Duration(calls)
}
