package archtest

import (
	"fmt"
	"go/ast"
	"go/doc"
)

// checkExplained checks a package's comments and examples.
func checkExplained(p Package) []string {
	if p.OnlyTests() {
		return nil
	}
	var broken []string
	if where := packageComment(p); where == "" {
		broken = append(broken, fmt.Sprintf("%s: package has no package comment", p.Folder))
	} else if where != "doc.go" && !p.Command() {
		broken = append(broken, fmt.Sprintf("%s: the package comment is in %s, and belongs into doc.go", p.Folder, where))
	}
	if p.Public() && !hasRunnableExample(p) {
		broken = append(broken, fmt.Sprintf("%s: package has no Example function with an output", p.Folder))
	}
	if p.Command() {
		return broken
	}
	for _, file := range p.Files {
		if file.Test {
			continue
		}
		for _, name := range uncommented(file.Syntax) {
			broken = append(broken, fmt.Sprintf("%s/%s: %s has no comment", p.Folder, file.Name, name))
		}
	}
	return broken
}

// packageComment returns the name of the file with the package's comment, doc.go
// if that is one of several, or "" if there is none.
func packageComment(p Package) string {
	where := ""
	for _, file := range p.Files {
		if !file.Test && commented(file.Syntax.Doc) && where != "doc.go" {
			where = file.Name
		}
	}
	return where
}

// hasRunnableExample reports whether `go test` runs an example of the package and
// compares what it prints.
func hasRunnableExample(p Package) bool {
	for _, file := range p.Files {
		if !file.Test {
			continue
		}
		for _, example := range doc.Examples(file.Syntax) {
			if example.Output != "" || example.EmptyOutput {
				return true
			}
		}
	}
	return false
}

// uncommented returns the exported names of a file that nothing is said about.
func uncommented(file *ast.File) []string {
	var names []string
	for _, declaration := range file.Decls {
		switch d := declaration.(type) {
		case *ast.FuncDecl:
			if name, exported := funcName(d); exported && !commented(d.Doc) {
				names = append(names, name)
			}
		case *ast.GenDecl:
			names = append(names, uncommentedSpecs(d)...)
		}
	}
	return names
}

// funcName returns the name of a function or method as a reader knows it, and
// whether other packages see it.
func funcName(f *ast.FuncDecl) (name string, exported bool) {
	if f.Recv == nil {
		return f.Name.Name, f.Name.IsExported()
	}
	receiver := receiverName(f.Recv.List[0].Type)
	return receiver + "." + f.Name.Name, f.Name.IsExported() && ast.IsExported(receiver)
}

// receiverName returns the name of the type in a receiver: T in T, *T and T[K].
func receiverName(expression ast.Expr) string {
	switch e := expression.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.StarExpr:
		return receiverName(e.X)
	case *ast.ParenExpr:
		return receiverName(e.X)
	case *ast.IndexExpr:
		return receiverName(e.X)
	case *ast.IndexListExpr:
		return receiverName(e.X)
	}
	return ""
}

// uncommentedSpecs returns the exported names of one declaration of types,
// constants or variables that nothing is said about.
func uncommentedSpecs(d *ast.GenDecl) []string {
	var names []string
	for _, spec := range d.Specs {
		switch s := spec.(type) {
		case *ast.TypeSpec:
			// What is said above a group of types is not about each of them.
			said := commented(s.Doc) || commented(s.Comment) || (!d.Lparen.IsValid() && commented(d.Doc))
			if s.Name.IsExported() && !said {
				names = append(names, s.Name.Name)
			}
			if methods, is := s.Type.(*ast.InterfaceType); is && s.Name.IsExported() {
				names = append(names, uncommentedMethods(s.Name.Name, methods)...)
			}
		case *ast.ValueSpec:
			if commented(s.Doc) || commented(s.Comment) || commented(d.Doc) {
				continue
			}
			for _, name := range s.Names {
				if name.IsExported() {
					names = append(names, name.Name)
				}
			}
		}
	}
	return names
}

// uncommentedMethods returns the methods of an interface that nothing is said about.
func uncommentedMethods(of string, methods *ast.InterfaceType) []string {
	var names []string
	for _, method := range methods.Methods.List {
		if commented(method.Doc) || commented(method.Comment) {
			continue
		}
		// An embedded interface has no names here.
		for _, name := range method.Names {
			if name.IsExported() {
				names = append(names, of+"."+name.Name)
			}
		}
	}
	return names
}

// commented reports whether a comment says anything: directives don't.
func commented(group *ast.CommentGroup) bool {
	return group.Text() != ""
}
