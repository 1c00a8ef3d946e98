package main

import (
	"os"
	"slices"
	"strings"
)

// beside are the words that the names and URIs begin with of what is offered beside what
// the tour is about.
func beside() []string { return strings.Fields(os.Getenv("TOUR_BESIDE")) }

// ours leaves that out.
func ours(offered []string) []string {
	return slices.DeleteFunc(slices.Clone(offered), func(name string) bool {
		return slices.ContainsFunc(beside(), func(word string) bool { return strings.HasPrefix(name, word) })
	})
}

// missing returns the words that nothing begins with.
func missing(offered []string) (words []string) {
	for _, word := range beside() {
		if !slices.ContainsFunc(offered, func(name string) bool { return strings.HasPrefix(name, word) }) {
			words = append(words, word)
		}
	}
	return words
}
