package scripting

import (
	"testing"

	"github.com/mcpd/mcpd/internal/js/dates"
)

func TestDates(t *testing.T) {
	const prelude = `const berlin = { zone: "Europe/Berlin" }, show = (d) => d.toISOString(); return `
	for _, c := range []struct{ expression, want string }{
		{`show(dates.parse("2026-03-29"))`, `"2026-03-29T00:00:00.000Z"`},
		{`show(dates.parse("2026-03-29 12:30", undefined, berlin))`, `"2026-03-29T10:30:00.000Z"`},
		{`show(dates.parse("2026-03-29T12:30:15.25+05:30", undefined, berlin))`, `"2026-03-29T07:00:15.250Z"`},
		{`show(dates.parse("29.3.26, 4:05 pm", "D.M.YY"))`, `failure Thrown: dates.parse: ` + dates.ErrPattern.Error()},
		{`show(dates.parse("Sun, 29 mar 2026 4:05 pm", "ddd, D MMM YYYY h:mm A", berlin))`, `"2026-03-29T14:05:00.000Z"`},
		{`show(dates.parse("day 05 of June 2026 at 12:00:00.007 -0330", "[day] DD [of] MMMM YYYY [at] HH:mm:ss.SSS Z"))`, `"2026-06-05T15:30:00.007Z"`},
		{`show(dates.parse("29/02/2026", "DD/MM/YYYY"))`, `failure Thrown: dates.parse: the text does not match this pattern`},
		{`show(dates.parse("2026-1-1", "YYYY-MM-DD"))`, `failure Thrown: dates.parse: the text does not match this pattern`},
		{`show(dates.parse("2026-01-01x", "YYYY-MM-DD"))`, `failure Thrown: dates.parse: the text does not match this pattern`},
		{`show(dates.parse("tomorrow"))`, `failure Thrown: dates.parse: ` + dates.ErrISO.Error()},
		{`dates.format(0)`, `"1970-01-01T00:00:00.000+00:00"`},
		{`dates.format("2026-07-01T22:05:09.007Z", "dddd ddd D DD M MM MMM MMMM YYYY H HH h hh m mm s ss SSS A Z [T]", berlin)`,
			`"Thursday Thu 2 02 7 07 Jul July 2026 0 00 12 12 5 05 9 09 007 AM +02:00 T"`},
		{`dates.format(0, "yyyy")`, `failure Thrown: dates.format: ` + dates.ErrPattern.Error()},
		{`dates.format(0, "[x")`, `failure Thrown: dates.format: ` + dates.ErrPattern.Error()},
		{`dates.format(8e15)`, `failure Thrown: dates.format: the year must be of four digits`},
		{`dates.format(new Date(NaN))`, `failure Thrown: dates.format: the date must be a Date that is valid, milliseconds since 1970, or text of ISO 8601`},
		{`dates.format(0, "YYYY", { zone: "Europe/Nowhere" })`, `failure Thrown: dates.format: there is no such time zone; write a name such as "Europe/Berlin"`},
		{`dates.format(0, "YYYY", { zone: "Local" })`, `failure Thrown: dates.format: there is no such time zone; write a name such as "Europe/Berlin"`},
		{`dates.format(0, "YYYY", { zone: "../../etc/passwd" })`, `failure Thrown: dates.format: there is no such time zone; write a name such as "Europe/Berlin"`},
		{`dates.format(0, "YYYY", { tz: "UTC" })`, `failure Thrown: dates.format: there is no such option; there is zone`},
		{`dates.parts(new Date("2026-03-29T12:30:15.250Z"), berlin)`, `{"year":2026,"month":3,"day":29,"hour":14,"minute":30,"second":15,"millisecond":250,"weekday":7,"offset":120}`},
		{`show(dates.add("2026-01-31T10:00:00Z", { months: 1, days: 1, hours: -1 }))`, `"2026-03-01T09:00:00.000Z"`},
		{`show(dates.add("2026-03-28T11:00:00Z", { days: 1 }, berlin))`, `"2026-03-29T10:00:00.000Z"`},
		{`show(dates.add("2026-03-28T11:00:00Z", { hours: 24 }, berlin))`, `"2026-03-29T11:00:00.000Z"`},
		{`show(dates.add("2024-02-29", { years: 1, weeks: 1, minutes: 1, seconds: 1, milliseconds: 1 }))`, `"2025-03-07T00:01:01.001Z"`},
		{`dates.add(0, { years: 1e9 })`, `failure Thrown: dates.add: the date is farther away than a Date can be`},
		{`dates.add(0, { days: 0.5 })`, `failure Thrown: dates.add: days must be a whole number of at most a billion`},
		{`dates.add(0, { day: 1 })`, `failure Thrown: dates.add: there is no such option; there is years, months, weeks, days, hours, minutes, seconds, milliseconds`},
		{`["year", "month", "week", "days", "hours", "minute", "second", "milliseconds"].map(u => dates.diff("2024-02-29", "2026-02-28", u))`, `[2,24,104,730,17520,1051200,63072000,63072000000]`},
		{`[dates.diff("2026-02-28", "2024-02-29", "month"), dates.diff("2026-03-29", "2026-03-30", "day", berlin), dates.diff(-8e15, 8e15, "month")]`, `[-24,1,6084237]`},
		{`dates.diff(0, 1, "fortnight")`, `failure Thrown: dates.diff: the unit must be year, month, week, day, hour, minute, second or millisecond`},
		{`["year", "quarter", "month", "week", "day", "hour", "minute", "second"].map(u => dates.format(dates.startOf("2026-06-14T22:45:15.25Z", u, berlin), "MM-DD HH:mm:ss.SSS", berlin))`,
			`["01-01 00:00:00.000","04-01 00:00:00.000","06-01 00:00:00.000","06-15 00:00:00.000","06-15 00:00:00.000","06-15 00:00:00.000","06-15 00:45:00.000","06-15 00:45:15.000"]`},
		{`dates.startOf(0, "moment")`, `failure Thrown: dates.startOf: the unit must be year, quarter, month, week, day, hour, minute or second`},
	} {
		if got := shown(runScript(t, prelude+c.expression, `{}`)); got != c.want {
			t.Errorf("%s\n got %s\nwant %s", c.expression, got, c.want)
		}
	}
}

func TestNumbers(t *testing.T) {
	for _, c := range []struct{ expression, want string }{
		{`[1234567.891, -1234.5, 0, 999, 1000, 1e21, 1e-7].map(n => numbers.format(n))`, `["1,234,567.891","-1,234.5","0","999","1,000","1,000,000,000,000,000,000,000","0.0000001"]`},
		{`[1.005, -2.5, 0.004, -0.001, 999.995].map(n => numbers.format(n, { decimals: 2 }))`, `["1.01","-2.50","0.00","0.00","1,000.00"]`},
		{`[2.5, 9.5, 0.5].map(n => numbers.format(n, { decimals: 0, group: "" }))`, `["3","10","1"]`},
		{`numbers.format(1234.5, { decimals: 1, group: ".", point: "," })`, `"1.234,5"`},
		{`numbers.format(NaN)`, `failure Thrown: numbers.format: a finite number is needed`},
		{`numbers.format(1, { decimals: 21 })`, `failure Thrown: numbers.format: decimals must be a whole number from 0 to 20`},
		{`numbers.format(1, { group: ".", point: "." })`, `failure Thrown: numbers.format: group and point must be short, and differ`},
		{`[" 1,234.5 ", "-0.25", "+7", "1234567"].map(t => numbers.parse(t))`, `[1234.5,-0.25,7,1234567]`},
		{`numbers.parse("1.234.567,5", { group: ".", point: "," })`, `1234567.5`},
		{`["", "1,23", "12,34,567", "1e5", "0x10", ".5", "1.", "--1", "1 2", ",123"].map(t => { try { return numbers.parse(t) } catch (e) { return e.name } }).every(n => n === "SyntaxError")`, `true`},
		{`[0, 1023, 1536, 1610612736, 1048576, -2048, 1e300].slice(0, 6).map(n => numbers.formatBytes(n))`, `["0 B","1023 B","1.5 KiB","1.5 GiB","1 MiB","-2 KiB"]`},
		{`numbers.formatBytes(1610612736, { base: 1000, decimals: 2 })`, `"1.61 GB"`},
		{`["1.5 GiB", "10MB", "512", "7 b", "2kib", "1 KB"].map(t => numbers.parseBytes(t))`, `[1610612736,10000000,512,7,2048,1000]`},
		{`["", "GiB", "1 XiB", "1 GiBB", "-1 B", "1 k"].map(t => { try { return numbers.parseBytes(t) } catch (e) { return e.name } }).every(n => n === "SyntaxError")`, `true`},
		{`[9000000, 0, 90061001, -500].map(n => numbers.formatDuration(n))`, `["2h30m","0s","1d1h1m1s1ms","-500ms"]`},
		{`["2h30m", "1.5 h", "1w 2d", "250ms", "-5s"].map(t => numbers.parseDuration(t))`, `[9000000,5400000,777600000,250,-5000]`},
		{`["", "5", "30m2h", "1h1h", "h", "1x"].map(t => { try { return numbers.parseDuration(t) } catch (e) { return e.name } }).every(n => n === "SyntaxError")`, `true`},
	} {
		if got := shown(runScript(t, "return "+c.expression, `{}`)); got != c.want {
			t.Errorf("%s\n got %s\nwant %s", c.expression, got, c.want)
		}
	}
}
