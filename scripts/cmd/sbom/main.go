// Command sbom prints the bill of materials of a program, as CycloneDX JSON: the
// version of Go and the modules that were linked, which the program itself says.
//
//	sbom -version VERSION PROGRAM
//
// Nothing in it depends on when or where it is made.
package main

import (
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path"
	"strings"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	flags := flag.NewFlagSet("sbom", flag.ContinueOnError)
	version := flags.String("version", "", "`version` of the program")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() != 1 || *version == "" {
		return errors.New("usage: sbom -version VERSION PROGRAM")
	}
	info, err := buildinfo.ReadFile(flags.Arg(0))
	if err != nil {
		return fmt.Errorf("read what the program was built of: %w", err)
	}
	content, err := os.ReadFile(flags.Arg(0))
	if err != nil {
		return fmt.Errorf("read the program: %w", err)
	}
	digest := sha256.Sum256(content)

	program := component(cdx.ComponentTypeApplication, info.Path, *version)
	program.Name = path.Base(info.Path)
	program.Hashes = &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: hex.EncodeToString(digest[:])}}
	linked := []cdx.Component{component(cdx.ComponentTypeLibrary, "std", strings.TrimPrefix(info.GoVersion, "go"))}
	for _, module := range info.Deps {
		v := module.Version
		if module.Replace != nil { // our own, of the same commit
			v = *version
		}
		linked = append(linked, component(cdx.ComponentTypeLibrary, module.Path, v))
	}
	references := make([]string, len(linked))
	for i, c := range linked {
		references[i] = c.BOMRef
	}
	bom := cdx.NewBOM()
	bom.Metadata = &cdx.Metadata{Component: &program}
	bom.Components = &linked
	bom.Dependencies = &[]cdx.Dependency{{Ref: program.BOMRef, Dependencies: &references}}
	return cdx.NewBOMEncoder(out, cdx.BOMFileFormatJSON).SetPretty(true).EncodeVersion(bom, cdx.SpecVersion1_5)
}

// component describes a Go package or module, whose package URL is its reference.
func component(kind cdx.ComponentType, name, version string) cdx.Component {
	url := "pkg:golang/" + name + "@" + version
	return cdx.Component{BOMRef: url, Type: kind, Name: name, Version: version, PackageURL: url}
}
