package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/mcpd/mcpd/diag"
)

// cellRow is a row in the table of arguments.
type cellRow struct {
	name, typ, def, summary string
	required                bool
}

// writeArguments writes a table of the arguments, if there are any.
func (l *listLine) writeArguments(out *strings.Builder) {
	rows := rowsOf(l.schema)
	for _, a := range l.arguments {
		rows = append(rows, cellRow{name: a.Name, typ: "string", summary: a.Description, required: a.Required})
	}
	if len(rows) == 0 {
		return
	}
	var padded strings.Builder
	table := tabwriter.NewWriter(&padded, 0, 0, 2, ' ', 0)
	fmt.Fprint(table, "  argument\ttype\trequired\tdefault\tdescription\n")
	for _, r := range rows {
		required := "no"
		if r.required {
			required = "yes"
		}
		fmt.Fprintf(table, "  %s\t%s\t%s\t%s\t%s\n", cell(r.name), cell(r.typ), required, cell(r.def), summaryOf(r.summary))
	}
	_ = table.Flush() // writes to memory cannot fail
	for row := range strings.Lines(padded.String()) {
		out.WriteString(strings.TrimRight(row, " \n") + "\n")
	}
}

// cell returns untrusted text that is safe in a table cell.
func cell(text string) string {
	return strings.ReplaceAll(diag.Printable(strings.ReplaceAll(text, "\n", " ")), "\t", " ")
}

// rowsOf returns the properties of an object schema in order. Other schemas have no
// rows.
func rowsOf(schema json.RawMessage) (rows []cellRow) {
	var object struct {
		Properties json.RawMessage
		Required   []string
	}
	if len(schema) == 0 || json.Unmarshal(schema, &object) != nil {
		return nil
	}
	names, members := inOrder(object.Properties)
	for i, name := range names {
		var said struct {
			Title, Description string
			Default            json.RawMessage
		}
		_ = json.Unmarshal(members[i], &said) // a boolean schema has none of these
		row := cellRow{name: name, typ: typeOf(members[i], 0), def: string(said.Default), summary: said.Description, required: slices.Contains(object.Required, name)}
		if row.summary == "" {
			row.summary = said.Title
		}
		rows = append(rows, row)
	}
	return rows
}

// deepestType is the depth at which typeOf stops.
const deepestType = 3

// typeOf returns the type of a schema in the notation of tool files where it has one.
func typeOf(schema json.RawMessage, depth int) string {
	var said struct {
		Type                 any
		Enum                 []json.RawMessage
		Const                json.RawMessage
		Items                json.RawMessage
		AdditionalProperties json.RawMessage
		Properties           json.RawMessage
	}
	if json.Unmarshal(schema, &said) != nil || depth == deepestType {
		return "any"
	}
	if said.Const != nil {
		said.Enum = []json.RawMessage{said.Const}
	}
	if len(said.Enum) > 0 {
		values := make([]string, len(said.Enum))
		for i, value := range said.Enum {
			values[i] = string(value)
		}
		return strings.Join(values, " | ")
	}
	switch kind := said.Type.(type) {
	case []any:
		return strings.Trim(strings.ReplaceAll(fmt.Sprint(kind), " ", " | "), "[]")
	case string:
		switch {
		case kind == "boolean":
			return "bool"
		case kind == "bigint":
			return "integer (any size)"
		case kind == "array":
			return "list(" + typeOf(orAny(said.Items), depth+1) + ")"
		case kind == "object" && said.Properties != nil:
			names, _ := inOrder(said.Properties)
			return "object({" + strings.Join(names, ", ") + "})"
		case kind == "object":
			return "map(" + typeOf(orAny(said.AdditionalProperties), depth+1) + ")"
		}
		return kind
	}
	return "any"
}

func orAny(schema json.RawMessage) json.RawMessage {
	if schema == nil {
		return json.RawMessage("true")
	}
	return schema
}
