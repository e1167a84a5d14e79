package daemon

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// versionJSON says what program this is.
type versionJSON struct {
	Name     string  `json:"name"`
	Version  string  `json:"version"`
	Revision *string `json:"revision"`
	Go       string  `json:"go"`
	Platform string  `json:"platform"`
}

// build reads what the linker has left in the program.
func (a *app) build() versionJSON {
	v := versionJSON{Name: a.name, Version: a.version, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				v.Revision = optional(s.Value)
			}
		}
	}
	if v.Version == "" && ok {
		v.Version = info.Main.Version
	}
	if v.Version == "" {
		v.Version = "(devel)"
	}
	return v
}

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  takes(),
		RunE: func(*cobra.Command, []string) error {
			v := a.build()
			if !a.text() {
				a.printJSON(v)
				return nil
			}
			fmt.Fprintf(a.out, "%s %s", v.Name, v.Version)
			if v.Revision != nil {
				fmt.Fprintf(a.out, " (%s)", *v.Revision)
			}
			fmt.Fprintf(a.out, " %s %s\n", v.Go, v.Platform)
			return nil
		},
	}
}
