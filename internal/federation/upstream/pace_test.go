package upstream

import (
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpd/mcpd/internal/base/jsonguard"
)

// TestAServerIsNotHeardAsFastAsItSpeaks: neither where it answers what nobody has asked, nor
// where it says nothing at all.
func TestAServerIsNotHeardAsFastAsItSpeaks(t *testing.T) {
	for name, said := range map[string]string{
		"ends of the stream": "data: {\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{}}\n\n",
		"notifications":      "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}\n\n",
		"answers to nothing": "data: {\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{}}\n\n",
		"events of others":   "event: ping\ndata: {}\n\n",
		"comments":           ": hush\n\n",
		"blank lines":        "\n",
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWire(jsonguard.Limits{Bytes: 1 << 20, Depth: maxDepth, Tokens: maxTokens}, Asks{}, func(string, string) {})
			w.ready.Store(true)
			began := time.Now()
			stream := newEvents(io.NopCloser(strings.NewReader(strings.Repeat(said, 2*paceBurst))), w, &stream{listens: name == "ends of the stream"}, true)
			if _, err := io.Copy(io.Discard, stream); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if took := time.Since(began); took < paceBurst*paceEach*99/100 {
				t.Errorf("%d %s are heard within %s", 2*paceBurst, name, took)
			}
		})
	}
}
