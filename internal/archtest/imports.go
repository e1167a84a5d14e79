package archtest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// emptyNames are package names that say nothing about what is in them.
var emptyNames = []string{"util", "utils", "common", "types", "models", "helper", "helpers", "misc"}

// Check returns one line for each thing in the packages that breaks the rules.
func Check(rules Rules, packages []Package) []string {
	var broken []string
	for _, p := range packages {
		broken = append(broken, checkImports(rules, p)...)
		broken = append(broken, checkExplained(p)...)
	}
	return broken
}

// checkImports checks a package's name and what it imports.
func checkImports(rules Rules, p Package) []string {
	var broken []string
	if slices.Contains(emptyNames, p.Name) {
		broken = append(broken, fmt.Sprintf("%s: a package named %s says nothing about what is in it", p.Folder, p.Name))
	}
	name, rule, found := rules.find(p.Folder)
	if !found {
		return append(broken, fmt.Sprintf("%s: package is not in the table of internal/archtest/rules.go", p.Folder))
	}
	code := Rule{Module: append(rules.allowedModule(rule), name), ThirdParty: rule.ThirdParty}
	tests := Rule{
		Module:     append(slices.Clone(code.Module), rules.Tests.Module...),
		ThirdParty: append(slices.Clone(code.ThirdParty), rules.Tests.ThirdParty...),
	}
	for _, file := range p.Files {
		allowed := code
		if file.Test {
			allowed = tests
		}
		for _, spec := range file.Syntax.Imports {
			// The parser has accepted it as a string.
			path, _ := strconv.Unquote(spec.Path.Value)
			if reason := rules.refuse(path, allowed); reason != "" {
				broken = append(broken, fmt.Sprintf("%s/%s: imports %s: %s", p.Folder, file.Name, path, reason))
			}
		}
	}
	return broken
}

// refuse returns why an import is not allowed, or "" if it is.
func (r Rules) refuse(path string, allowed Rule) string {
	folder, inside := strings.CutPrefix(path+"/", r.Module+"/")
	switch {
	case path == "C":
		return "pawl builds without cgo"
	case inside:
		folder = strings.TrimSuffix(folder, "/")
		if folder == "" {
			folder = root
		}
		if !anyMatches(allowed.Module, folder) {
			return "against the direction of the layers"
		}
	case !isStandard(path):
		if !slices.ContainsFunc(allowed.ThirdParty, func(module string) bool { return matches(module+"/"+everything, path) }) {
			return "this package does without it"
		}
	}
	return ""
}

// isStandard reports whether a package belongs to the standard library, whose
// paths have no dot in their first part.
func isStandard(path string) bool {
	first, _, _ := strings.Cut(path, "/")
	return !strings.Contains(first, ".")
}
