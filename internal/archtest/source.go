package archtest

import (
	"fmt"
	"go/ast"
	"go/build/constraint"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
)

// Package is the source of one folder.
type Package struct {
	Folder string // below the module's root, with slashes; "." is the root
	Name   string // as its files say, without a _test
	Files  []File // in the order of their names
}

// File is one parsed file.
type File struct {
	Name   string // without folder
	Test   bool   // its name ends in _test.go
	Syntax *ast.File
}

// Command reports whether the package is a program.
func (p Package) Command() bool { return p.Name == "main" }

// Public reports whether users can import the package.
func (p Package) Public() bool {
	return !p.Command() && !p.OnlyTests() && !slices.Contains(strings.Split(p.Folder, "/"), "internal")
}

// OnlyTests reports whether the package has nothing but test files.
func (p Package) OnlyTests() bool {
	return !slices.ContainsFunc(p.Files, func(f File) bool { return !f.Test })
}

// Load reads all packages of the module whose root is the given file system.
func Load(module fs.FS) ([]Package, error) {
	folders := map[string]map[string]string{}
	err := fs.WalkDir(module, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir():
			return skipFolder(module, name)
		case path.Ext(name) != ".go":
			return nil
		}
		text, err := fs.ReadFile(module, name)
		if err != nil {
			return err
		}
		folder := path.Dir(name)
		if folders[folder] == nil {
			folders[folder] = map[string]string{}
		}
		folders[folder][path.Base(name)] = string(text)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read source tree: %w", err)
	}
	var packages []Package
	for _, folder := range slices.Sorted(maps.Keys(folders)) {
		parsed, err := Parse(folder, folders[folder])
		if err != nil {
			return nil, err
		}
		if len(parsed.Files) > 0 {
			packages = append(packages, parsed)
		}
	}
	return packages, nil
}

// skipFolder returns fs.SkipDir for a folder that does not belong to the module.
func skipFolder(module fs.FS, name string) error {
	base := path.Base(name)
	if name == "." {
		return nil
	}
	if strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_") || base == "testdata" || base == "vendor" {
		return fs.SkipDir
	}
	if _, err := fs.Stat(module, path.Join(name, "go.mod")); err == nil {
		return fs.SkipDir
	}
	return nil
}

// Parse makes a package of a folder's sources, which are given by file name.
func Parse(folder string, sources map[string]string) (Package, error) {
	parsed := Package{Folder: folder}
	files := token.NewFileSet()
	for _, name := range slices.Sorted(maps.Keys(sources)) {
		syntax, err := parser.ParseFile(files, path.Join(folder, name), sources[name], parser.ParseComments)
		if err != nil {
			return Package{}, fmt.Errorf("parse %s: %w", path.Join(folder, name), err)
		}
		if ignored(syntax) {
			continue
		}
		file := File{Name: name, Test: strings.HasSuffix(name, "_test.go"), Syntax: syntax}
		parsed.Files = append(parsed.Files, file)
		if !file.Test || parsed.Name == "" {
			parsed.Name = strings.TrimSuffix(syntax.Name.Name, "_test")
		}
	}
	return parsed, nil
}

// ignored reports whether a file is marked as part of no build.
func ignored(file *ast.File) bool {
	for _, group := range file.Comments {
		for _, line := range group.List {
			if line.Pos() > file.Package || !constraint.IsGoBuild(line.Text) {
				continue
			}
			condition, err := constraint.Parse(line.Text)
			if err == nil && condition.String() == "ignore" {
				return true
			}
		}
	}
	return false
}
