package mcp

import (
	"fmt"

	"github.com/mcpd/mcpd/internal/base/jsontext"
)

// hasAudio reports whether the revision has audio content (2025-03-26 schema, AudioContent).
func hasAudio(version string) bool { return version >= version20250326 }

// hasLinks reports whether the revision has resource links (2025-06-18 schema, ResourceLink).
func hasLinks(version string) bool { return version >= version20250618 }

// version returns the revision that the call is answered in.
func (c *request) version() string {
	if c.era == modern || c.origin.session == nil {
		return newestModern
	}
	return c.origin.session.version
}

// fitBlocks returns an array of content blocks without types that the revision lacks:
// audio becomes an embedded resource, a resource link becomes text. It returns content
// itself if the revision has all types.
func fitBlocks(content []byte, version string) []byte {
	if hasLinks(version) {
		return content
	}
	return appendEach(nil, content, func(dst, block []byte, n int) []byte { return appendFitted(dst, block, version, n) })
}

// appendFitted appends the n-th block of a result as the revision has it.
func appendFitted(dst, block []byte, version string, n int) []byte {
	switch kind := string(jsontext.Unquote(jsontext.Get(block, "type"))); {
	case kind == "audio" && !hasAudio(version):
		return appendEmbeddedAudio(dst, block, n)
	case kind == "resource_link" && !hasLinks(version):
		return appendLinkText(dst, block)
	}
	return appendRaw(dst, block)
}

// appendEmbeddedAudio appends an audio block as an embedded resource.
func appendEmbeddedAudio(dst, block []byte, n int) []byte {
	dst = append(appendText(append(dst, '{'), "type", "resource"), `,"resource":{`...)
	dst = appendText(dst, "uri", fmt.Sprintf("mcpd://audio/%d", n))
	dst = appendValue(dst, "mimeType", jsontext.Get(block, "mimeType"))
	dst = append(appendValue(dst, "blob", jsontext.Get(block, "data")), '}')
	return append(appendCommon(dst, block), '}')
}

// appendLinkText appends a resource link as a text block.
func appendLinkText(dst, block []byte) []byte {
	name := jsontext.Unquote(jsontext.Get(block, "title"))
	if len(name) == 0 {
		name = jsontext.Unquote(jsontext.Get(block, "name"))
	}
	said := fmt.Sprintf("%s: %s", name, jsontext.Unquote(jsontext.Get(block, "uri")))
	if description := jsontext.Unquote(jsontext.Get(block, "description")); len(description) > 0 {
		said += "\n" + string(description)
	}
	dst = appendText(appendText(append(dst, '{'), "type", "text"), "text", said)
	return append(appendCommon(dst, block), '}')
}

// appendCommon appends the members that blocks of every type may have.
func appendCommon(dst, block []byte) []byte {
	for _, name := range []string{"annotations", "_meta"} {
		if value := jsontext.Get(block, name); value != nil {
			dst = appendValue(dst, name, value)
		}
	}
	return dst
}

// appendEach appends an array with the elements that fit appends, given each element
// and its number from 1 on. Anything but an array is appended as it is.
func appendEach(dst, list []byte, fit func(dst, element []byte, n int) []byte) []byte {
	rest, ok := jsontext.Elements(list)
	if !ok {
		return appendRaw(dst, list)
	}
	dst = append(dst, '[')
	for n := 1; ; n++ {
		element, ok := rest.Element()
		if !ok {
			return append(dst, ']')
		}
		if n > 1 {
			dst = append(dst, ',')
		}
		dst = fit(dst, element, n)
	}
}

// fitMessages returns an object whose member "messages" is fitted to the revision:
// fit appends the content of the n-th message as the revision has it.
func fitMessages(object []byte, fit func(dst, content []byte, n int) []byte) []byte {
	return fitMember(object, "messages", func(dst, list []byte) []byte {
		return appendEach(dst, list, func(dst, message []byte, n int) []byte {
			return append(dst, fitMember(message, "content", func(dst, content []byte) []byte { return fit(dst, content, n) })...)
		})
	})
}

// fitMember returns an object with one member replaced by what fit appends.
func fitMember(object []byte, replaced string, fit func(dst, value []byte) []byte) []byte {
	rest, ok := jsontext.Members(object)
	if !ok {
		return object
	}
	fitted := []byte{'{'}
	for {
		name, value, ok := rest.Member()
		if !ok {
			return append(fitted, '}')
		}
		fitted = appendMember(fitted, string(name))
		if string(name) == replaced {
			fitted = fit(fitted, value)
		} else {
			fitted = appendRaw(fitted, value)
		}
	}
}

// fitPrompt returns the result of prompts/get as the revision has it.
func fitPrompt(result []byte, version string) []byte {
	if hasLinks(version) {
		return result
	}
	return fitMessages(result, func(dst, block []byte, n int) []byte { return appendFitted(dst, block, version, n) })
}

// fitSampling returns the params of sampling/createMessage as the revision has them.
// Sampling has no embedded resources, so that audio becomes a text.
func fitSampling(params []byte, version string) []byte {
	if hasAudio(version) {
		return params
	}
	return fitMessages(params, func(dst, content []byte, _ int) []byte {
		if len(content) > 0 && content[0] == '[' {
			return appendEach(dst, content, func(dst, block []byte, _ int) []byte { return appendSampled(dst, block) })
		}
		return appendSampled(dst, content)
	})
}

// appendSampled appends a block of a sampling message for a revision without audio.
func appendSampled(dst, block []byte) []byte {
	if string(jsontext.Unquote(jsontext.Get(block, "type"))) != "audio" {
		return appendRaw(dst, block)
	}
	note := fmt.Sprintf("[audio of type %s, which this protocol revision cannot carry]", jsontext.Unquote(jsontext.Get(block, "mimeType")))
	return append(appendText(appendText(append(dst, '{'), "type", "text"), "text", note), '}')
}
