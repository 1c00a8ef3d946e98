package compose

import (
	"bytes"
	"fmt"
)

// The files of a deployment.
const (
	composeFile    = "docker-compose.yml"
	dockerFile     = "Dockerfile"
	namespaceFile  = "kubernetes/1-namespace.yaml"
	configMapsFile = "kubernetes/2-files.yaml"
	upstreamsFile  = "kubernetes/3-upstreams.yaml"
	serverFile     = "kubernetes/4-mcpd.yaml"
	unitFile       = "mcpd.service"
)

// names are those of all files that there may be, in their order. Manifests are
// applied in the order of their names.
var names = []string{composeFile, dockerFile, namespaceFile, configMapsFile, upstreamsFile, serverFile, unitFile}

// mark begins what written says in the first line of each file, behind "# ".
const mark = "Written by mcpd compose."

// written says in each file where it comes from.
const written = mark + " What is changed here is gone with its next run: change mcpd.hcl."

// File is a file of a deployment: its path, with slashes, from the folder of
// docker-compose.yml.
type File struct {
	Name    string
	Content []byte
}

// Written reports whether a file is one that [Files] has returned, then or now: its
// first line says so. Whoever takes that line out makes the file their own.
func Written(content []byte) bool { return bytes.HasPrefix(content, []byte("# "+mark)) }

// Files returns the files of a deployment in a fixed order: for Compose, to build
// the image, for Kubernetes and for systemd. The error, which may be several
// joined, names each upstream and each field that these files cannot express.
func Files(d Deployment) ([]File, error) {
	d = d.completed()
	if err := check(&d); err != nil {
		return nil, fmt.Errorf("write the deployment: %w", err)
	}
	var files []File
	for _, write := range []func(*Deployment) (File, error){
		project, recipe, namespace, configMaps, upstreamManifests, serverManifests, unit,
	} {
		f, err := write(&d)
		if err != nil {
			return nil, fmt.Errorf("write the deployment: %w", err)
		}
		if f.Content != nil {
			files = append(files, f)
		}
	}
	return files, nil
}
