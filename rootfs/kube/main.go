// Kube is every Kubernetes program of a node, etcd, CoreDNS and flannel in one file: the name it is called by
// (or, when called kube, its first argument) decides which it is.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	_ "time/tzdata" // time zones of CronJobs, without files

	"github.com/coredns/coredns/coremain"
	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"

	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

// programs is what this file answers to; each runs until its process ends.
var programs = map[string]func(){
	"kubelet":                 func() { run(kubelet.NewKubeletCommand(context.Background())) },
	"kube-apiserver":          func() { run(apiserver.NewAPIServerCommand()) },
	"kube-controller-manager": func() { run(controllermanager.NewControllerManagerCommand()) },
	"kube-scheduler":          func() { run(scheduler.NewSchedulerCommand()) },
	"kube-proxy":              func() { run(proxy.NewProxyCommand()) },
	"etcd":                    func() { etcdmain.Main(os.Args) },
	"coredns":                 coremain.Run,
	"etcdutl":                 etcdutl,
	"flanneld":                runFlannel,
}

func main() {
	name := filepath.Base(os.Args[0])
	if _, known := programs[name]; !known && len(os.Args) > 1 {
		name = os.Args[1]
		os.Args = os.Args[1:]
	}

	program, known := programs[name]
	if !known {
		names := make([]string, 0, len(programs))
		for each := range programs {
			names = append(names, each)
		}

		sort.Strings(names)
		fmt.Fprintf(os.Stderr, "kube: call it by, or give as first argument, one of: %s\n", strings.Join(names, " "))
		os.Exit(2)
	}

	if name != "coredns" {
		dropFlags("conf", "dns.port", "p", "pidfile", "plugins", "quiet", "version")
	}

	program()
}

// dropFlags takes CoreDNS's flags out of those of the process: the others would take them for their own.
func dropFlags(names ...string) {
	kept := flag.NewFlagSet(os.Args[0], flag.ExitOnError)
	flag.VisitAll(func(f *flag.Flag) {
		if !slices.Contains(names, f.Name) {
			kept.Var(f.Value, f.Name, f.Usage)
		}
	})

	flag.CommandLine = kept
}

func run(command *cobra.Command) {
	os.Exit(cli.Run(command))
}
