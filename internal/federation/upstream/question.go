package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
)

// pending is a question that has no answer yet.
type pending struct {
	Question
	answered chan Answer
}

// ask waits for the answer to a question of the server.
func (c *Call) ask(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	c.mu.Lock()
	c.asks++
	p := &pending{Question: Question{Key: "q" + strconv.Itoa(c.asks), Method: method, Params: params}, answered: make(chan Answer, 1)}
	c.open = append(c.open, p)
	c.mu.Unlock()
	c.look()
	select {
	case a := <-p.answered:
		if a.Refused != "" {
			return nil, errors.New(a.Refused)
		}
		return a.Result, nil
	case <-ctx.Done():
		c.withdraw(p)
		return nil, ctx.Err()
	case <-c.done:
		c.withdraw(p)
		return nil, errors.New("the call has ended")
	}
}

// withdraw forgets a question whose answer nobody waits for any more.
func (c *Call) withdraw(p *pending) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open = slices.DeleteFunc(c.open, func(o *pending) bool { return o == p })
}

func (c *Call) look() {
	select {
	case c.asked <- struct{}{}:
	default:
	}
}

// questions returns those that are open.
func (c *Call) questions() (asked []Question) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.open {
		asked = append(asked, p.Question)
	}
	return asked
}

// Answer answers questions by their keys. Those that stay open are asked again by Next.
func (c *Call) Answer(answers map[string]Answer) {
	c.mu.Lock()
	var left []*pending
	for _, p := range c.open {
		if a, given := answers[p.Key]; given {
			p.answered <- a
			continue
		}
		left = append(left, p)
	}
	c.open = left
	c.mu.Unlock()
	if len(left) > 0 {
		c.look()
	}
}
