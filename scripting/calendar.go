package scripting

import "time"

// addMonths adds months on the calendar; a day that a month lacks becomes its last.
func addMonths(t time.Time, months int) time.Time {
	first := time.Date(t.Year(), t.Month()+time.Month(months), 1, 0, 0, 0, 0, time.UTC)
	day := min(t.Day(), daysIn(first.Year(), first.Month()))
	return time.Date(first.Year(), first.Month(), day, t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), t.Location())
}

// addUnits adds calendar units, of days and more, or exact ones below.
func addUnits(t time.Time, unit string, n int) (time.Time, bool) {
	switch unit {
	case "year":
		return addMonths(t, 12*n), true
	case "month":
		return addMonths(t, n), true
	case "week":
		return t.AddDate(0, 0, 7*n), true
	case "day":
		return t.AddDate(0, 0, n), true
	}
	exact, ok := exactUnits[unit]
	return time.UnixMilli(t.UnixMilli() + int64(n)*exact.Milliseconds()).In(t.Location()), ok
}

// exactUnits are always as long.
var exactUnits = map[string]time.Duration{"hour": time.Hour, "minute": time.Minute, "second": time.Second, "millisecond": time.Millisecond}

// diffUnits returns how many whole units lie between two dates, by which later
// ones come behind earlier ones.
func diffUnits(from, to time.Time, unit string) (int, bool) {
	apart := to.UnixMilli() - from.UnixMilli()
	if exact, ok := exactUnits[unit]; ok {
		return int(apart / exact.Milliseconds()), true
	}
	if apart < 0 {
		n, ok := diffUnits(to, from, unit)
		return -n, ok
	}
	days := map[string]float64{"year": 365.2425, "month": 30.436875, "week": 7, "day": 1}[unit]
	if days == 0 {
		return 0, false
	}
	// Years and months differ in length, and days by an hour.
	n := int(float64(apart) / (days * 86_400_000))
	n -= min(n, 2)
	for {
		next, _ := addUnits(from, unit, n+1)
		if next.After(to) {
			return n, true
		}
		n++
	}
}

// startOf returns when the unit began that the date is in. Weeks begin on Monday.
func startOf(t time.Time, unit string) (time.Time, bool) {
	year, month, day := t.Date()
	midnight := func(month time.Month, day int) time.Time {
		return time.Date(year, month, day, 0, 0, 0, 0, t.Location())
	}
	into := time.Duration(t.Nanosecond())
	switch unit {
	case "year":
		return midnight(1, 1), true
	case "quarter":
		return midnight(month-(month-1)%3, 1), true
	case "month":
		return midnight(month, 1), true
	case "week":
		return midnight(month, day-(int(t.Weekday())+6)%7), true
	case "day":
		return midnight(month, day), true
	case "hour":
		into += time.Duration(t.Minute())*time.Minute + time.Duration(t.Second())*time.Second
	case "minute":
		into += time.Duration(t.Second()) * time.Second
	case "second":
	default:
		return t, false
	}
	return t.Add(-into), true
}
