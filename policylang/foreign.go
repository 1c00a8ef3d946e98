package policylang

import "strings"

// foreign returns how policies write a function or member that other languages
// have under this name, or "".
func foreign(name string) string {
	switch name {
	case "length", "len", "count":
		return "write .size()"
	case "isEmpty", "empty":
		return "write .size() == 0"
	case "toLowerCase", "toLower", "lower", "lowercase", "downcase":
		return "write .lowerAscii()"
	case "toUpperCase", "toUpper", "upper", "uppercase", "upcase":
		return "write .upperAscii()"
	case "includes":
		return "write .contains('x') of a string, and 'x' in list of a list"
	case "test", "match", "regex", "regexMatch":
		return "write .matches('pattern')"
	case "some", "any":
		return "write .exists(x, x == 'a')"
	case "every":
		return "write .all(x, x == 'a')"
	case "parseInt", "Number", "parseFloat", "float":
		return "write int(x) or double(x)"
	case "str", "String", "toString":
		return "write string(x)"
	}
	return ""
}

// partOfTime returns how policies ask a value of CEL type t, if it is a time,
// for what a member of this name would be, or "".
func partOfTime(t, name string) string {
	if t != "timestamp" {
		return ""
	}
	switch strings.ToLower(strings.TrimSuffix(name, "s")) {
	case "hour":
		return "write .getHours()"
	case "minute":
		return "write .getMinutes()"
	case "second":
		return "write .getSeconds()"
	case "weekday", "dayofweek":
		return "write .getDayOfWeek(), where 0 is Sunday"
	case "day", "date":
		return "write .getDate()"
	case "month":
		return "write .getMonth(), where 0 is January"
	case "year":
		return "write .getFullYear()"
	}
	return "write a function, such as .getHours() or .getDayOfWeek()"
}
