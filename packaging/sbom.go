package main

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path"
	"regexp"
	"runtime/debug"
	"strings"
	"time"

	"github.com/spdx/tools-golang/spdx/v2/common"
	spdx "github.com/spdx/tools-golang/spdx/v2/v2_3"
)

// writeSBOM writes the SPDX 2.3 document of a binary. It lists the Go toolchain's
// standard library and each module that the linker may have used.
func writeSBOM(from, to string) error {
	b, err := readBinary(from)
	if err != nil {
		return err
	}
	text, err := encode(b.sbom())
	if err != nil {
		return err
	}
	return os.WriteFile(to, text, 0o644)
}

func (b *binary) sbom() *spdx.Document {
	sum := fmt.Sprintf("%x", sha256.Sum256(b.content))
	program := modulePackage(&b.info.Main)
	program.PackageVersion = b.info.Main.Version
	program.PackageFileName = path.Base(b.info.Path)
	program.PackageLicenseDeclared = license
	program.PrimaryPackagePurpose = "APPLICATION"
	program.PackageChecksums = []common.Checksum{{Algorithm: common.SHA256, Value: sum}}
	doc := &spdx.Document{
		SPDXVersion:       spdx.Version,
		DataLicense:       spdx.DataLicense,
		SPDXIdentifier:    "DOCUMENT",
		DocumentName:      fmt.Sprintf("%s-%s-%s-%s", program.PackageFileName, b.version(), b.settings["GOOS"], b.settings["GOARCH"]),
		DocumentNamespace: repository + "/spdx/" + sum,
		CreationInfo: &spdx.CreationInfo{
			Created:  b.committed().Format(time.RFC3339),
			Creators: []common.Creator{{CreatorType: "Tool", Creator: "mcpd-packaging"}},
		},
		Packages:      []*spdx.Package{program},
		Relationships: []*spdx.Relationship{relate("DOCUMENT", "DESCRIBES", program.PackageSPDXIdentifier)},
	}
	standard := &debug.Module{Path: "stdlib", Version: strings.TrimPrefix(b.info.GoVersion, "go")}
	for _, module := range append([]*debug.Module{standard}, b.info.Deps...) {
		if module.Replace != nil {
			module = module.Replace
		}
		dependency := modulePackage(module)
		doc.Packages = append(doc.Packages, dependency)
		doc.Relationships = append(doc.Relationships, relate(program.PackageSPDXIdentifier, "DEPENDS_ON", dependency.PackageSPDXIdentifier))
	}
	return doc
}

var notInIdentifiers = regexp.MustCompile(`[^A-Za-z0-9.-]+`)

func modulePackage(module *debug.Module) *spdx.Package {
	return &spdx.Package{
		PackageName:             module.Path,
		PackageSPDXIdentifier:   common.ElementID("Module-" + notInIdentifiers.ReplaceAllString(module.Path, "-")),
		PackageVersion:          module.Version,
		PackageDownloadLocation: "NOASSERTION",
		PackageLicenseConcluded: "NOASSERTION",
		PackageLicenseDeclared:  "NOASSERTION",
		PackageCopyrightText:    "NOASSERTION",
		PackageExternalReferences: []*spdx.PackageExternalReference{{
			Category: common.CategoryPackageManager,
			RefType:  common.TypePackageManagerPURL,
			Locator:  "pkg:golang/" + module.Path + "@" + strings.ReplaceAll(module.Version, "+", "%2B"),
		}},
	}
}

func relate(from common.ElementID, kind string, to common.ElementID) *spdx.Relationship {
	return &spdx.Relationship{RefA: common.MakeDocElementID("", string(from)), Relationship: kind, RefB: common.MakeDocElementID("", string(to))}
}
