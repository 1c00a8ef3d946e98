// Package esbuild compiles TypeScript, import declarations and new syntax with esbuild.
package esbuild

import (
	"errors"
	"strings"

	"github.com/evanw/esbuild/pkg/api"

	"github.com/mcpd/mcpd/scripting/transpile"
)

// New returns a transpiler.
func New() transpile.Transpiler { return compiler{} }

type compiler struct{}

// lacking has the syntax of ES2022 that the engine lacks.
func lacking() map[string]bool {
	return map[string]bool{
		"async-generator": false, "for-await": false, "class-private-brand-check": false,
		"top-level-await": true, "hashbang": false,
	}
}

func (compiler) Transpile(in transpile.Input) transpile.Output {
	loader, sourceMap := api.LoaderJS, api.SourceMapExternal
	if in.TypeScript {
		loader = api.LoaderTS
	}
	if in.Check {
		sourceMap = api.SourceMapNone
	}
	if in.Files == nil {
		result := api.Transform(in.Source, api.TransformOptions{
			Loader: loader, Target: api.ES2022, Supported: lacking(),
			Sourcemap: sourceMap, SourcesContent: api.SourcesContentExclude,
			LogLevel: api.LogLevelSilent, LogLimit: in.MaxErrors, TsconfigRaw: "{}", Charset: api.CharsetUTF8,
			LegalComments: api.LegalCommentsNone,
		})
		return transpile.Output{Code: result.Code, Map: result.Map, Errors: errorsOf(result.Errors)}
	}
	result := api.Build(api.BuildOptions{
		Stdin:  &api.StdinOptions{Contents: in.Source, Sourcefile: transpile.Entry, Loader: loader},
		Bundle: true, Write: false, Outfile: "/body.js", AbsWorkingDir: "/",
		Format: api.FormatESModule, Platform: api.PlatformNeutral, Target: api.ES2022, Supported: lacking(),
		Sourcemap: sourceMap, SourcesContent: api.SourcesContentExclude, TsconfigRaw: "{}",
		LogLevel: api.LogLevelSilent, LogLimit: in.MaxErrors, Charset: api.CharsetUTF8, LegalComments: api.LegalCommentsNone,
		Plugins: []api.Plugin{plugin(in.Files)},
	})
	out := transpile.Output{Errors: errorsOf(result.Errors)}
	if len(out.Errors) > 0 {
		return out
	}
	for _, file := range result.OutputFiles {
		if strings.HasSuffix(file.Path, ".map") {
			out.Map = file.Contents
		} else {
			out.Code = file.Contents
		}
	}
	return out
}

// plugin makes the bundler read only files: the namespace prevents access to the disk.
func plugin(files transpile.Files) api.Plugin {
	resolve := func(args api.OnResolveArgs) (api.OnResolveResult, error) {
		path, err := files.Resolve(args.Importer, args.Path, args.Kind == api.ResolveJSImportStatement)
		return api.OnResolveResult{Path: path, Namespace: transpile.Namespace}, err
	}
	load := func(args api.OnLoadArgs) (api.OnLoadResult, error) {
		text, format, err := files.Load(args.Path)
		if refused := (*transpile.Refused)(nil); errors.As(err, &refused) {
			return api.OnLoadResult{Errors: []api.Message{{Text: refused.Error(), Detail: refused}}}, nil
		}
		if err != nil {
			return api.OnLoadResult{}, err
		}
		loader := map[transpile.Format]api.Loader{transpile.JavaScript: api.LoaderJS, transpile.TypeScript: api.LoaderTS, transpile.JSON: api.LoaderJSON}[format]
		return api.OnLoadResult{Contents: &text, Loader: loader}, nil
	}
	return api.Plugin{Name: transpile.Namespace, Setup: func(build api.PluginBuild) {
		build.OnResolve(api.OnResolveOptions{Filter: ".*"}, resolve)
		build.OnLoad(api.OnLoadOptions{Filter: ".*"}, load)
	}}
}

func errorsOf(messages []api.Message) []transpile.Error {
	out := make([]transpile.Error, len(messages))
	for i, m := range messages {
		out[i] = transpile.Error{
			Text: strings.ReplaceAll(m.Text, `"`+transpile.Namespace+":", `"`), Location: locationOf(m.Location),
			Syntax: m.Location != nil && m.PluginName == "" && !strings.HasPrefix(m.Text, "No matching export"),
		}
		for _, note := range m.Notes {
			out[i].Notes = append(out[i].Notes, transpile.Note{Text: note.Text, Location: locationOf(note.Location)})
		}
		if refused, ok := m.Detail.(*transpile.Refused); ok {
			out[i].Refused = &refused.Diagnostic
		}
	}
	return out
}

func locationOf(at *api.Location) *transpile.Location {
	if at == nil {
		return nil
	}
	return &transpile.Location{File: strings.TrimPrefix(at.File, transpile.Namespace+":"), Line: at.Line, Column: at.Column, Length: at.Length}
}
