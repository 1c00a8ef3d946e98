package privdiff

import (
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/language/definition"
	"github.com/mcpd/mcpd/internal/language/hclfile"
)

// silent are the members of definitions that are not compared, with the reason.
var silent = regexp.MustCompile(strings.Join([]string{
	`\.Tests\b`,              // tests verify a definition and give it no privilege
	`\.Hash$`, `\.Semantic$`, // hashes of the text, including order and layout
	`Ranges$`, `(Input|Output)Origin\b`, // ranges
	`\.ResolvedPath$`,                // set only on checked grants, not in definitions
	`^Snapshot\.Config\.Incomplete$`, // only set for files with errors
	`^Snapshot\.ConfigDir$`,          // the base of relative paths
	`\.(Run|DryRun|Complete\.Run|ReasonExpr|When|Allow|Deny|Approval|Key|Expr|Operate|Impersonate)\.Path$`, // code that only moves is unchanged
	`\.Expr\.Language$`, // always CEL
	`\.Argument.*\.Complete$`,
	`\.BigInts`, `\.BigIntOutput`, `\.Declared$`, // the schemas have the limits of integers
}, "|"))

// Every member of every definition is filled and changed, one at a time, and each change must
// be reported. A new member in a grant or block fails here until it has a fact or is listed as
// silent.
func TestCompare_everyMember(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED with -short: one goroutine works here alone")
	}
	before, after := filledSide(), filledSide()
	if changes := Compare(before, after); len(changes) != 0 {
		t.Fatalf("a snapshot differs from itself: %v", changes)
	}
	members := 0
	side := reflect.ValueOf(&after).Elem()
	walk(side, "Snapshot", func(path string, v reflect.Value, change func()) {
		members++
		was := reflect.New(v.Type()).Elem()
		was.Set(v)
		change()
		reported := len(Compare(before, after)) > 0
		v.Set(was)
		if isSilent := silent.MatchString(path); reported == isSilent {
			t.Errorf("%s: Compare reports a change: %v, silent matches: %v. Add a fact in subject.go, offer.go or snapshot.go, or add the member to silent", path, reported, isSilent)
		}
	})
	if members < 300 {
		t.Errorf("only %d members", members)
	}
}

func filledSide() Snapshot {
	return *filled(reflect.TypeFor[Snapshot](), "Snapshot").Interface().(*Snapshot)
}

// words are the values of members that accept only certain words.
var words = map[string][2]string{
	"Snapshot.Config.Audit.Mode":             {definition.AuditRelaxed, definition.AuditStrict},
	"Snapshot.Config.Server.Mode":            {definition.Development, definition.Production},
	"Snapshot.Config.Server.DefaultDecision": {definition.DecideAllow, definition.DecideDeny},
}

// filled returns a pointer to a value without zero members.
func filled(typ reflect.Type, path string) reflect.Value {
	p := reflect.New(typ)
	v := p.Elem()
	switch value := p.Interface().(type) {
	case *json.RawMessage:
		*value = json.RawMessage(`{"type":"object","properties":{"a":{"type":"string"}}}`)
		return p
	case *diag.Range:
		return p
	case *diag.Text:
		*value = diag.WholeFile("f", "text")
		return p
	}
	if typ == templateType {
		v.Set(template("x://{a}"))
		return p
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString("s")
		if strings.HasSuffix(path, ".Root") || strings.HasSuffix(path, ".Path") || strings.HasSuffix(path, "ToolsDir") {
			v.SetString("/tools/s")
		}
		if w, ok := words[path]; ok {
			v.SetString(w[0])
		}
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(7)
	case reflect.Uint8, reflect.Uint32:
		v.SetUint(7)
	case reflect.Float64:
		v.SetFloat(7)
	case reflect.Pointer:
		if strings.Count(path, ".Base64") < 2 { // it is recursive
			v.Set(filled(typ.Elem(), path))
		}
	case reflect.Slice:
		v.Set(reflect.Append(v, filled(typ.Elem(), path+"[]").Elem()))
	case reflect.Map:
		v.Set(reflect.MakeMap(typ))
		v.SetMapIndex(filled(typ.Key(), path).Elem(), filled(typ.Elem(), path+"[]").Elem())
	case reflect.Struct:
		for i := range typ.NumField() {
			if typ.Field(i).IsExported() {
				v.Field(i).Set(filled(typ.Field(i).Type, path+"."+typ.Field(i).Name).Elem())
			}
		}
	case reflect.Array:
	case reflect.Func:
	default:
		panic(fmt.Sprintf("%s: no value of type %v", path, typ))
	}
	return p
}

var templateType = reflect.TypeOf(definition.Template{}.URITemplate)

// template returns a URI template.
func template(text string) reflect.Value {
	src := fmt.Sprintf("resource_template \"t\" {\n  uri_template = %q\n  text = \"\"\n}\n", text)
	file, _ := hclfile.Parse(hclfile.Source{Path: "a.hcl", Bytes: []byte(src)}, hclfile.ToolsKind)
	defined, _ := file.Decode(hclfile.Scope{})
	return reflect.ValueOf(defined.Templates[0].URITemplate)
}

// walk visits each member that can be changed; change modifies it.
func walk(v reflect.Value, path string, visit func(path string, v reflect.Value, change func())) {
	switch value := v.Addr().Interface().(type) {
	case *json.RawMessage:
		visit(path, v, func() { *value = json.RawMessage(`{"type":"object","properties":{"a":{"type":"integer"}}}`) })
		return
	case *diag.Range:
		return // positions are not compared
	case *diag.Text:
		visit(path, v, func() { *value = diag.WholeFile("f", "other") })
		return
	}
	if v.Type() == templateType {
		visit(path, v, func() { v.Set(template("x://{b}")) })
		return
	}
	switch v.Kind() {
	case reflect.String:
		visit(path, v, func() {
			if w, ok := words[path]; ok {
				v.SetString(w[1])
				return
			}
			v.SetString(v.String() + "x")
		})
	case reflect.Bool:
		visit(path, v, func() { v.SetBool(!v.Bool()) })
	case reflect.Int, reflect.Int64:
		visit(path, v, func() { v.SetInt(v.Int() + 1) })
	case reflect.Uint8, reflect.Uint32:
		visit(path, v, func() { v.SetUint(v.Uint() + 1) })
	case reflect.Float64:
		visit(path, v, func() { v.SetFloat(v.Float() + 1) })
	case reflect.Array:
		visit(path, v, func() { v.Index(0).SetUint(1) })
	case reflect.Pointer:
		if !v.IsNil() {
			walk(v.Elem(), path, visit)
			if path != "Snapshot.Config" && path != "Snapshot.Files[]" { // every snapshot has them
				visit(path+"=nil", v, func() { v.SetZero() })
			}
		}
	case reflect.Func:
	case reflect.Slice:
		walk(v.Index(0), path+"[]", visit)
		visit(path+"=nil", v, func() { v.SetZero() })
	case reflect.Map:
		visit(path, v, func() { v.SetZero() })
	case reflect.Struct:
		for i := range v.Type().NumField() {
			if v.Type().Field(i).IsExported() {
				walk(v.Field(i), path+"."+v.Type().Field(i).Name, visit)
			}
		}
	}
}
