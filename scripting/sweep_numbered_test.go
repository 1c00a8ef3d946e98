package scripting

import (
	"fmt"
	"strings"
)

// numberedCode are constructs of n parts that differ from each other.
func numberedCode(n int) map[string]string {
	each := func(before, format, after string) string {
		var b strings.Builder
		b.WriteString(before)
		for i := range n {
			fmt.Fprintf(&b, strings.ReplaceAll(format, "%d", "%[1]d"), i)
		}
		b.WriteString(after)
		return b.String()
	}
	return map[string]string{
		"labels loop":          each("", "a%d:for(;;){", "") + strings.Repeat("}", n),
		"labels brk":           each("", "a%d:{", "") + each("", "break a%d;", "") + strings.Repeat("}", n),
		"labels flat numbered": each("", "a%d:;", ""),
		"members numbered":     each("a", ".a%d", ""),
		"optmembers":           each("a", "?.a%d", ""),
		"destr numbered":       each("let {", "a%d,", "}=b"),
		"destra numbered":      each("let [", "a%d,", "]=b"),
		"destrk":               each("let {", "a:a%d,", "}=b"),
		"vardestr numbered":    each("", "var {a%d}=b;", ""),
		"priv use":             each("class A{", "#a%d;", "") + each("b(){", "this.#a%d;", "}}"),
		"priv undecl":          each("class A{b(){", "this.#a%d;", "}}"),
		"privmeth":             each("class A{", "#a%d(){}", "}"),
		"privacc":              each("class A{", "get #a%d(){return 1}", "}"),
		"fields":               each("class A{", "a%d=1;", "}"),
		"sfields":              each("class A{", "static a%d=1;", "}"),
		"classes":              each("", "class A%d{}", ""),
		"classext numbered":    each("", "class A%d extends A{}", ""),
		"fnuse":                each("", "function f%d(){}", "") + each("", "f%d();", ""),
		"fnchain":              each("", "function f%d(){f}", ""),
		"consts":               each("", "const a%d=1;", ""),
		"constuse":             each("", "const a%d=1;", "") + each("", "a%d;", ""),
		"constclos":            each("", "const a%d=1;", "") + each("()=>{", "a%d;", "}"),
		"constclos2":           each("", "const a%d=()=>a%d;", ""),
		"letsblock":            each("{", "let a%d;", "}"),
		"nested fn":            each("", "function f%d(){", "") + strings.Repeat("}", n),
		"nested fnuse":         each("", "function f%d(a%d){", "") + each("", "a%d;", "") + strings.Repeat("}", n),
		"nested let":           each("", "{let a%d;()=>a%d;", "") + strings.Repeat("}", n),
		"nested for":           each("", "for(let a%d;;){()=>a%d;", "") + strings.Repeat("}", n),
		"nested try":           each("", "try{}catch(a%d){", "") + strings.Repeat("}", n),
		"nested cls":           each("", "class A%d{a(){", "") + strings.Repeat("}}", n),
		"nested cls2":          each("", "class A%d{static{", "") + strings.Repeat("}}", n),
		"nested cls3":          each("", "(class A%d{static a=", "1") + strings.Repeat("})", n),
		"catches":              each("", "try{}catch(a%d){}", ""),
		"strs numbered":        each("x=[", "'a%d',", "]"),
		"nums numbered":        each("x=[", "%d,", "]"),
		"floats":               each("x=[", "%d.5,", "]"),
		"bigs":                 each("x=[", "%dn,", "]"),
		"ids":                  each("x=[", "a%d,", "]"),
		"tpls":                 each("x=[", "`a%d${b}`,", "]"),
		"tags numbered":        each("", "a`%d`;", ""),
		"res":                  each("x=[", "/a%d/,", "]"),
		"arrows numbered":      each("x=[", "a%d=>a%d,", "]"),
		"args numbered":        each("f(", "a%d,", ")"),
		"assigns":              each("", "a%d=", "1"),
		"assignst":             each("", "a%d=1;", ""),
		"plus numbered":        each("x=", "a%d+", "1"),
		"switchstr":            each("switch(a){", "case 'a%d':", "}"),
		"if numbered":          each("", "if(a==%d){}else ", ";"),
		"tern numbered":        each("x=", "a==%d?1:", "2"),
		"objmeth numbered":     each("x={", "a%d(){},", "}"),
		"objget numbered":      each("x={", "get a%d(){return 1},", "}"),
		"objnum numbered":      each("x={", "%d:1,", "}"),
		"objstr":               each("x={", "'a b%d':1,", "}"),
		"objshort numbered":    each("x={", "a%d,", "}"),
		"objnest":              each("x=", "{a%d:", "1") + strings.Repeat("}", n),
		"vars numbered":        each("", "var a%d=1;", "") + each("", "a%d;", ""),
		"inputs":               each("", "input.a%d;", ""),
		"http":                 each("", "http.a%d;", ""),
		"undefs":               each("", "a%d();", ""),
		"imports numbered":     each("import {", "a%d,", "} from './a.js';"),
		"importas":             each("import {", "default as a%d,", "} from './a.js';"),
		"importuse":            each("import {", "default as a%d,", "} from './a.js';") + each("", "a%d;", ""),
		"imports files":        each("", "import a%d from './a%d.js';", ""),
		"usings numbered":      each("", "{using a%d=b}", ""),
		"uspaced":              each("", "using a%d=b\n", ""),
		"forawaits numbered":   each("", "for await(const a%d of b){a%d}", ""),
		"gens":                 each("", "async function*f%d(){yield 1}", ""),
		"privs in":             each("class A{", "#a%d;", "") + each("b(c){", "#a%d in c;", "}}"),
		"ts enum numbered":     each("enum A{", "a%d=%d,", "}"),
		"ts enumref numbered":  each("enum A{a,", "a%d=a,", "}"),
		"ts enumchain": func() string {
			var b strings.Builder
			b.WriteString("enum A{a0=1,")
			for i := 1; i < n; i++ {
				fmt.Fprintf(&b, "a%d=a%d|1,", i, i-1)
			}
			return b.String() + "}"
		}(),
		"ts enumuse numbered":    each("enum A{", "a%d,", "}") + each("", "A.a%d;", ""),
		"ts enums":               each("", "enum A%d{a}", ""),
		"ts enumsame":            each("", "enum A{a%d}", ""),
		"ts ns numbered":         each("", "namespace A%d{export const a=1}", ""),
		"ts nssame":              each("", "namespace A{export const a%d=1}", ""),
		"ts nsexp numbered":      each("namespace A{", "export const a%d=1;", "}"),
		"ts nsuse numbered":      each("namespace A{", "export const a%d=1;", "") + each("", "a%d;", "}"),
		"ts nsnest numbered":     each("", "namespace A%d{export const a%d=1;", "") + strings.Repeat("}", n),
		"ts nsdot":               each("namespace A", ".A%d", "{export const a=1}"),
		"ts nssibuse":            each("", "namespace A{export const a%d=1}", "") + each("namespace A{", "a%d;", "}"),
		"ts types numbered":      each("", "type A%d=B;", ""),
		"ts iface":               each("interface A{", "a%d:b;", "}"),
		"ts params":              each("class A{constructor(", "public a%d,", "){}}"),
		"ts gparams numbered":    each("function f<", "A%d,", ">(){}"),
		"ts decos numbered":      each("class A{", "@a b%d;", "}"),
		"ts decomem":             each("class A{", "@a b%d(){}", "}"),
		"ts decocls":             each("", "@a class A%d{}", ""),
		"ts importeq numbered":   each("", "import a%d = b;", ""),
		"ts importtype numbered": each("", "import type a%d from './a.js';", ""),
		"ts decl":                each("", "declare const a%d;", ""),
		"ts overl":               each("", "function f%d();function f%d(){}", ""),
	}
}
