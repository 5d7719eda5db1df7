// Kubectl, for the person at the machine that builds; a node has no use for it.
package main

import (
	"os"

	_ "k8s.io/client-go/plugin/pkg/client/auth" // its ways to log in
	"k8s.io/component-base/cli"
	"k8s.io/component-base/logs"
	"k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"
)

func main() {
	logs.GlogSetter(cmd.GetLogVerbosity(os.Args)) //nolint:errcheck // a wrong level is reported by the parser of flags

	if err := cli.RunNoErrOutput(cmd.NewDefaultKubectlCommand()); err != nil {
		util.CheckErr(err)
	}
}
