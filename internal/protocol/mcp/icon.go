package mcp

import "errors"

// Icon is an image that clients may show beside an entry (2026-07-28
// basic/index, icons).
type Icon struct {
	// Source is the URI of the image: https or data.
	Source string
	// MIMEType is empty when it is not known. Theme is "light", "dark", or empty for
	// either.
	MIMEType, Theme string
	// Sizes are such as "48x48" or "any"; nil when they are not known.
	Sizes []string
}

// checkIcons finds what clients would refuse.
func checkIcons(icons []Icon) error {
	for _, i := range icons {
		switch {
		case i.Source == "":
			return errors.New("an icon needs a source")
		case i.Theme != "" && i.Theme != "light" && i.Theme != "dark":
			return errors.New(`the theme of an icon must be "light" or "dark"`)
		}
	}
	return nil
}

// appendIcons appends the member "icons"; no icons append nothing.
func appendIcons(dst []byte, icons []Icon) []byte {
	if len(icons) == 0 {
		return dst
	}
	dst = append(appendMember(dst, "icons"), '[')
	for n, i := range icons {
		if n > 0 {
			dst = append(dst, ',')
		}
		dst = appendText(append(dst, '{'), "src", i.Source)
		dst = appendOptional(dst, "mimeType", i.MIMEType)
		dst = appendTexts(dst, "sizes", i.Sizes)
		dst = append(appendOptional(dst, "theme", i.Theme), '}')
	}
	return append(dst, ']')
}
