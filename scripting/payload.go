package scripting

import "fmt"

// MaxPayload is the most bytes of JSON that a body can pass to a [Host] at once.
// More is refused as [TooLarge] before the host hears of it, and leaves nothing
// in the journal.
const MaxPayload = 23 << 20

func tooLarge() *HostError {
	return &HostError{Code: TooLarge, Message: fmt.Sprintf("what is passed is more than %d MiB as JSON", MaxPayload>>20)}
}
