#!/bin/sh
# Copies the pinned versions of the libraries of the console from npm into this folder, with their
# licences. Run it after a change of a version, and commit the result.
set -eu

htmx=2.0.11
sse=2.2.4
uplot=1.6.32

cd "$(dirname "$0")"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# unpack NAME VERSION writes a package of npm to $work/NAME.
unpack() {
	archive=$(cd "$work" && npm pack --silent "$1@$2")
	mkdir "$work/$1"
	tar -xzf "$work/$archive" -C "$work/$1" --strip-components=1
}

unpack htmx.org "$htmx"
unpack htmx-ext-sse "$sse"
unpack uplot "$uplot"

cp "$work/htmx.org/dist/htmx.min.js" htmx.min.js
cp "$work/htmx.org/LICENSE" htmx.LICENSE
cp "$work/htmx-ext-sse/dist/sse.min.js" htmx-sse.min.js
cp "$work/htmx-ext-sse/LICENSE" htmx-sse.LICENSE
cp "$work/uplot/dist/uPlot.iife.min.js" uplot.min.js
cp "$work/uplot/dist/uPlot.min.css" uplot.min.css
cp "$work/uplot/LICENSE" uplot.LICENSE
