// Settings prints the settings that the Kubernetes programs and etcd of this module accept: their flags with the type of each,
// the feature gates, and the fields of the kubelet's configuration file. It is built in the module of rootfs/kube, so that it
// reads the very packages that the programs are linked from.
package main

import (
	"flag"
	"fmt"
	"reflect"
	"sort"
	"strings"

	"github.com/spf13/pflag"
	"go.etcd.io/etcd/server/v3/embed"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	"k8s.io/kubernetes/cmd/kubelet/app/options"

	kubelet "k8s.io/kubelet/config/v1beta1"
)

func main() {
	// In some releases it changes the default of a gate, which nobody may do once a set of flags has the gates.
	manager := controllermanager.NewControllerManagerCommand()

	printFlags("kubelet", kubeletFlags())
	printFlags("kube-apiserver", apiserver.NewAPIServerCommand().Flags())
	printFlags("kube-controller-manager", manager.Flags())
	printFlags("kube-scheduler", scheduler.NewSchedulerCommand().Flags())
	printFlags("kube-proxy", proxy.NewProxyCommand().Flags())
	printEtcdFlags()
	printGates()
	printFields(reflect.TypeFor[kubelet.KubeletConfiguration]())
}

// kubeletFlags are those that the kubelet parses itself; its command has none.
func kubeletFlags() *pflag.FlagSet {
	set := pflag.NewFlagSet("kubelet", pflag.ContinueOnError)
	options.NewKubeletFlags().AddFlags(set)

	configuration, err := options.NewKubeletConfiguration()
	if err != nil {
		panic(err)
	}

	options.AddKubeletConfigFlags(set, configuration)
	options.AddGlobalFlags(set)

	return set
}

func printFlags(program string, set *pflag.FlagSet) {
	fmt.Printf("flags %s\n", program)
	set.VisitAll(func(f *pflag.Flag) { fmt.Printf("  %s %s\n", f.Name, f.Value.Type()) })
}

// printEtcdFlags prints the flags of etcd's configuration and those that its command adds (etcdmain/config.go, where they
// cannot be queried).
func printEtcdFlags() {
	set := flag.NewFlagSet("etcd", flag.ContinueOnError)
	embed.NewConfig().AddFlags(set)

	types := map[string]string{
		"config-file": "string", "discovery-fallback": "string", "initial-cluster-state": "string",
		"v2-deprecation": "string", "version": "bool",
	}
	set.VisitAll(func(f *flag.Flag) { types[f.Name] = typeOf(f.Value) })

	names := make([]string, 0, len(types))
	for name := range types {
		names = append(names, name)
	}

	sort.Strings(names)
	fmt.Println("flags etcd")

	for _, name := range names {
		fmt.Printf("  %s %s\n", name, types[name])
	}
}

func typeOf(value flag.Value) string {
	if getter, ok := value.(flag.Getter); ok {
		return strings.TrimPrefix(strings.ToLower(reflect.TypeOf(getter.Get()).String()), "time.")
	}

	return strings.TrimPrefix(reflect.TypeOf(value).String(), "*flags.")
}

func printGates() {
	names := []string{}
	for name := range utilfeature.DefaultMutableFeatureGate.GetAll() {
		names = append(names, string(name))
	}

	sort.Strings(names)
	fmt.Println("gates")

	for _, name := range names {
		fmt.Printf("  %s\n", name)
	}
}

// printFields prints the fields of a struct as they are written in YAML, those of structs within it indented below them.
func printFields(root reflect.Type) {
	fmt.Println("fields kubelet")
	fields(root, "  ")
}

func fields(of reflect.Type, indent string) {
	for i := range of.NumField() {
		field := of.Field(i)
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")

		if field.Anonymous && (name == "" || strings.Contains(options, "inline")) {
			if of.NumField() > 0 && field.Type.Kind() == reflect.Struct && field.Type.String() != "v1.TypeMeta" {
				fields(field.Type, indent)
			}

			continue
		}

		if name == "" || name == "-" {
			continue
		}

		described, within := describe(field.Type)
		fmt.Printf("%s%s %s\n", indent, name, described)

		if within != nil {
			fields(within, indent+"  ")
		}
	}
}

// describe names a type, and gives the struct inside it if there is one.
func describe(of reflect.Type) (string, reflect.Type) {
	for of.Kind() == reflect.Pointer {
		of = of.Elem()
	}

	switch of.String() {
	case "v1.Duration":
		return "duration", nil
	case "resource.Quantity", "resource.QuantityValue":
		return "quantity", nil
	case "v1.Time", "v1.MicroTime":
		return "string", nil
	case "intstr.IntOrString", "runtime.RawExtension":
		return "any", nil
	}

	switch of.Kind() {
	case reflect.Struct:
		return "struct", of
	case reflect.Slice:
		if of.Elem().Kind() == reflect.Uint8 {
			return "string", nil
		}

		described, within := describe(of.Elem())

		return "list:" + described, within
	case reflect.Map:
		described, within := describe(of.Elem())

		return "map:" + described, within
	case reflect.Interface:
		return "any", nil
	default:
		return of.Kind().String(), nil
	}
}
