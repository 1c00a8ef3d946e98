package observability

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// query holds the selectors and groupings of a PromQL expression.
type query struct {
	selectors []selector
	groupings []grouping
}

// selector selects the series of one metric.
type selector struct {
	metric   string
	matchers []matcher
}

type matcher struct{ label, operator, value string }

// grouping names labels of some selectors.
type grouping struct {
	labels []string
	of     []selector
}

// parseQuery parses the part of PromQL that this example uses and refuses everything
// else. So it sees every name of a metric or label. The parser of Prometheus would add
// 250 modules.
func parseQuery(text string) (q query, err error) {
	p := &parser{}
	if p.tokens, err = tokens(text); err != nil {
		return q, err
	}
	defer func() {
		if wrong, ok := recover().(mistake); ok {
			err = fmt.Errorf("%s: %s", text, wrong)
		}
	}()
	if p.expression() {
		p.fail("a range where a value is wanted")
	}
	if p.peek() != "" {
		p.fail("more than one expression")
	}
	return p.query, nil
}

type mistake string

type parser struct {
	tokens []string
	query  query
}

var tokenForm = regexp.MustCompile(`^(?:[ \t\n]+|"(?:[^"\\\n]|\\.)*"|[0-9]+(?:\.[0-9]+)?(?:ms|[smhdwy])?\b|[a-zA-Z_:][a-zA-Z0-9_:]*|==|!=|<=|>=|=~|!~|[-+*/%^<>=(){}\[\],])`)

// tokens splits an expression. Grafana's variable for the range of a rate is a range.
func tokens(text string) (list []string, err error) {
	rest := strings.ReplaceAll(text, "$__rate_interval", "5m")
	for rest != "" {
		token := tokenForm.FindString(rest)
		if token == "" {
			return nil, fmt.Errorf("%s: unexpected %.20q", text, rest)
		}
		rest = rest[len(token):]
		if strings.TrimSpace(token) != "" {
			list = append(list, token)
		}
	}
	return list, nil
}

func (p *parser) fail(format string, words ...any) { panic(mistake(fmt.Sprintf(format, words...))) }

func (p *parser) peek() string {
	if len(p.tokens) == 0 {
		return ""
	}
	return p.tokens[0]
}

func (p *parser) next() string {
	token := p.peek()
	if token == "" {
		p.fail("the end comes too soon")
	}
	p.tokens = p.tokens[1:]
	return token
}

func (p *parser) accept(token string) bool {
	if p.peek() != token {
		return false
	}
	p.tokens = p.tokens[1:]
	return true
}

func (p *parser) expect(token string) {
	if got := p.next(); got != token {
		p.fail("%q where %q is wanted", got, token)
	}
}

var (
	operators   = strings.Fields("+ - * / % ^ == != < <= > >= and or unless")
	aggregators = strings.Fields("sum min max avg count topk bottomk")
	// functions maps each function to its argument kinds: n is a number or values, r a
	// range.
	functions = map[string]string{"rate": "r", "increase": "r", "resets": "r", "changes": "r", "histogram_quantile": "nn", "time": "", "absent": "n"}
	keywords  = strings.Fields("and or unless by without on ignoring group_left group_right bool offset")
	name      = regexp.MustCompile(`^[a-zA-Z_:][a-zA-Z0-9_:]*$`)
	duration  = regexp.MustCompile(`^[0-9]+(ms|[smhdwy])$`)
)

// expression reads operands with operators between them. It reports whether the result
// is a range.
func (p *parser) expression() (ranged bool) {
	first := len(p.query.selectors)
	ranged = p.operand()
	for slices.Contains(operators, p.peek()) {
		p.next()
		p.accept("bool")
		var matched []string
		if p.accept("on") || p.accept("ignoring") {
			matched = p.labels()
		}
		if ranged || p.operand() {
			p.fail("an operator on a range")
		}
		p.group(matched, first)
	}
	return ranged
}

// group records labels of the selectors from first on.
func (p *parser) group(labels []string, first int) {
	if len(labels) > 0 {
		p.query.groupings = append(p.query.groupings, grouping{labels, slices.Clone(p.query.selectors[first:])})
	}
}

func (p *parser) operand() (ranged bool) {
	if p.accept("-") || p.accept("+") {
		return p.operand()
	}
	token := p.next()
	switch {
	case token == "(":
		ranged = p.expression()
		p.expect(")")
	case slices.Contains(aggregators, token):
		p.aggregation()
	case p.peek() == "(":
		p.function(token)
	case name.MatchString(token) && !slices.Contains(keywords, token):
		return p.selector(token)
	default:
		if _, err := strconv.ParseFloat(token, 64); err != nil {
			p.fail("%q where a value is wanted", token)
		}
	}
	return ranged
}

func (p *parser) aggregation() {
	first := len(p.query.selectors)
	labels := p.by()
	p.expect("(")
	for more := true; more; more = p.accept(",") {
		if p.expression() {
			p.fail("a range is aggregated")
		}
	}
	p.expect(")")
	p.group(append(labels, p.by()...), first)
}

func (p *parser) by() []string {
	if p.accept("by") || p.accept("without") {
		return p.labels()
	}
	return nil
}

func (p *parser) labels() (labels []string) {
	p.expect("(")
	for !p.accept(")") {
		label := p.next()
		if !name.MatchString(label) {
			p.fail("%q is no label", label)
		}
		labels = append(labels, label)
		if p.peek() != ")" {
			p.expect(",")
		}
	}
	return labels
}

func (p *parser) function(called string) {
	kinds, known := functions[called]
	if !known {
		p.fail("there is no function %s", called)
	}
	p.expect("(")
	for i, kind := range kinds {
		if i > 0 {
			p.expect(",")
		}
		if p.expression() != (kind == 'r') {
			p.fail("%s is given a range where it wants values, or the reverse", called)
		}
	}
	p.expect(")")
}

func (p *parser) selector(metric string) (ranged bool) {
	s := selector{metric: metric}
	if p.accept("{") {
		for !p.accept("}") {
			s.matchers = append(s.matchers, p.matcher())
			if p.peek() != "}" {
				p.expect(",")
			}
		}
	}
	p.query.selectors = append(p.query.selectors, s)
	if p.accept("[") {
		p.duration()
		p.expect("]")
		ranged = true
	}
	if p.accept("offset") {
		p.duration()
	}
	return ranged
}

func (p *parser) duration() {
	if token := p.next(); !duration.MatchString(token) {
		p.fail("%q where a duration is wanted", token)
	}
}

func (p *parser) matcher() matcher {
	m := matcher{label: p.next(), operator: p.next()}
	value, err := strconv.Unquote(p.next())
	if err != nil || !name.MatchString(m.label) || !slices.Contains([]string{"=", "!=", "=~", "!~"}, m.operator) {
		p.fail("%s %s is no matcher", m.label, m.operator)
	}
	m.value = value
	return m
}
