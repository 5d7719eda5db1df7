// Interop drives a machine's API with the field's own Go client library and prints what it saw as JSON.
//
//	interop -talosconfig F [-endpoint HOST:PORT] [-node N | -nodes N,N] COMMAND [ARGUMENT...]
//
// Commands: call PATH JSON..., version, services, get NS TYPE ID, list NS TYPE..., watch NS TYPE COUNT, logs ID, copy PATH, read PATH, reboot,
// config FOLDER KUBERNETES-VERSION and expressions FILE (both ask nobody).
// A call that fails prints {"code": "...", "message": "..."} and exits with 3.
package main

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/state"
	"go.yaml.in/yaml/v4"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/siderolabs/talos/pkg/machinery/api/common"
	"github.com/siderolabs/talos/pkg/machinery/client"
	clientconfig "github.com/siderolabs/talos/pkg/machinery/client/config"
	"github.com/siderolabs/talos/pkg/machinery/constants"
	_ "github.com/siderolabs/talos/pkg/machinery/resources/block"
	_ "github.com/siderolabs/talos/pkg/machinery/resources/cluster"
	_ "github.com/siderolabs/talos/pkg/machinery/resources/config"
	_ "github.com/siderolabs/talos/pkg/machinery/resources/cri"
	_ "github.com/siderolabs/talos/pkg/machinery/resources/etcd"
	_ "github.com/siderolabs/talos/pkg/machinery/resources/files"
	_ "github.com/siderolabs/talos/pkg/machinery/resources/hardware"
	_ "github.com/siderolabs/talos/pkg/machinery/resources/k8s"
	_ "github.com/siderolabs/talos/pkg/machinery/resources/kubeaccess"
	_ "github.com/siderolabs/talos/pkg/machinery/resources/kubespan"
	_ "github.com/siderolabs/talos/pkg/machinery/resources/network"
	_ "github.com/siderolabs/talos/pkg/machinery/resources/perf"
	_ "github.com/siderolabs/talos/pkg/machinery/resources/runtime"
	_ "github.com/siderolabs/talos/pkg/machinery/resources/secrets"
	_ "github.com/siderolabs/talos/pkg/machinery/resources/security"
	_ "github.com/siderolabs/talos/pkg/machinery/resources/siderolink"
	_ "github.com/siderolabs/talos/pkg/machinery/resources/time"
	_ "github.com/siderolabs/talos/pkg/machinery/resources/v1alpha1"
)

var (
	talosconfig = flag.String("talosconfig", "", "client configuration; none means maintenance mode")
	endpoint    = flag.String("endpoint", "", "host:port of the API; without one, those of the client configuration")
	node        = flag.String("node", "", "the one node that is to answer")
	nodes       = flag.String("nodes", "", "the nodes that are to answer, comma separated")
	token       = flag.String("token", "", "the token that machines join with, for trustd")
	limit       = flag.Int("limit", 0, "read so many answers of a stream; 0 is all")
	timeout     = flag.Duration("timeout", 30*time.Second, "how long all of it may take")
)

func main() {
	flag.Parse()

	ctx, cancel := context.WithTimeout(context.Background(), *timeout)
	defer cancel()

	out, err := run(ctx, flag.Args())
	if err != nil {
		out = map[string]string{"code": status.Code(errors.Unwrap(err)).String(), "message": err.Error()}
		if s, ok := status.FromError(err); ok {
			out = map[string]string{"code": s.Code().String(), "message": s.Message()}
		}
	}

	encoded, encodeErr := json.Marshal(out)
	if encodeErr != nil {
		fmt.Fprintln(os.Stderr, encodeErr)
		os.Exit(1)
	}

	fmt.Println(string(encoded))

	if err != nil {
		os.Exit(3)
	}
}

func connect(ctx context.Context) (*client.Client, error) {
	if *talosconfig == "" {
		return client.New(ctx, client.WithTLSConfig(&tls.Config{InsecureSkipVerify: true}), client.WithEndpoints(*endpoint)) //nolint:gosec
	}

	config, err := clientconfig.Open(*talosconfig)
	if err != nil {
		return nil, err
	}

	options := []client.OptionFunc{client.WithConfig(config)}
	if *endpoint != "" {
		options = append(options, client.WithEndpoints(*endpoint))
	}

	return client.New(ctx, options...)
}

func run(ctx context.Context, args []string) (any, error) {
	if len(args) == 0 {
		return nil, errors.New("no command")
	}

	if args[0] == "config" && len(args) == 3 {
		return writeConfigs(args[1], args[2])
	}

	if args[0] == "expressions" && len(args) == 2 {
		return judgeExpressions(args[1])
	}

	c, err := connect(ctx)
	if err != nil {
		return nil, err
	}

	defer c.Close() //nolint:errcheck

	if *token != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, "token", *token)
	}

	if *node != "" {
		ctx = client.WithNode(ctx, *node)
	} else if *nodes != "" {
		ctx = client.WithNodes(ctx, strings.Split(*nodes, ",")...)
	}

	arg := func(n int) string {
		if len(args) > n {
			return args[n]
		}

		return ""
	}

	switch args[0] {
	case "call":
		return call(ctx, c, c.Conn(), arg(1), args[2:], *limit)
	case "version":
		return c.Version(ctx)
	case "services":
		return c.ServiceList(ctx)
	case "memory":
		return c.Memory(ctx)
	case "reboot":
		return "ok", c.Reboot(ctx)
	case "get":
		r, err := c.COSI.Get(ctx, resource.NewMetadata(arg(1), arg(2), arg(3), resource.VersionUndefined))
		if err != nil {
			return nil, err
		}

		return shown(r)
	case "list":
		all := map[string][]entry{}

		for _, kind := range args[2:] {
			list, err := c.COSI.List(ctx, resource.NewMetadata(arg(1), kind, "", resource.VersionUndefined))
			if err != nil {
				all[kind] = []entry{{ID: "error", Spec: err.Error()}}

				continue
			}

			all[kind] = []entry{}

			for _, r := range list.Items {
				e, err := shown(r)
				if err != nil {
					return nil, fmt.Errorf("show %s: %w", kind, err)
				}

				all[kind] = append(all[kind], e)
			}
		}

		return all, nil
	case "watch":
		return watch(ctx, c, arg(1), arg(2), arg(3))
	case "logs":
		stream, err := c.Logs(ctx, constants.SystemContainerdNamespace, common.ContainerDriver_CONTAINERD, arg(1), false, -1)
		if err != nil {
			return nil, err
		}

		reader, err := client.ReadStream(stream)
		if err != nil {
			return nil, err
		}

		text, err := io.ReadAll(reader)

		return string(text), err
	case "read":
		reader, err := c.Read(ctx, arg(1))
		if err != nil {
			return nil, err
		}

		text, err := io.ReadAll(reader)

		return string(text), err
	case "copy":
		return copied(ctx, c, arg(1))
	}

	return nil, fmt.Errorf("unknown command %q", args[0])
}

type entry struct {
	ID      string            `json:"id"`
	Version string            `json:"version"`
	Phase   string            `json:"phase"`
	Owner   string            `json:"owner"`
	Labels  map[string]string `json:"labels"`
	// What clients decide by how they take a spec.
	Annotations map[string]string `json:"annotations"`
	GoType      string            `json:"goType"`
	Spec        string            `json:"spec"`
}

// shown is a resource as the client decoded it: its spec's YAML is made here, from the typed value.
func shown(r resource.Resource) (entry, error) {
	spec, err := yaml.Marshal(r.Spec())

	return entry{
		ID:          r.Metadata().ID(),
		Version:     r.Metadata().Version().String(),
		Phase:       r.Metadata().Phase().String(),
		Owner:       r.Metadata().Owner(),
		Labels:      r.Metadata().Labels().Raw(),
		Annotations: r.Metadata().Annotations().Raw(),
		GoType:      fmt.Sprintf("%T", r.Spec()),
		Spec:        string(spec),
	}, err
}

func watch(ctx context.Context, c *client.Client, namespace, kind, count string) (any, error) {
	n, err := strconv.Atoi(count)
	if err != nil {
		return nil, err
	}

	ch := make(chan state.Event)

	if err := c.COSI.WatchKind(ctx, resource.NewMetadata(namespace, kind, "", resource.VersionUndefined), ch, state.WithBootstrapContents(true)); err != nil {
		return nil, err
	}

	seen := []string{}

	for range n {
		select {
		case event := <-ch:
			if event.Error != nil {
				return nil, event.Error
			}

			id := ""
			if event.Resource != nil {
				id = event.Resource.Metadata().ID()
			}

			seen = append(seen, strings.TrimSpace(event.Type.String()+" "+id))
		case <-ctx.Done():
			return nil, fmt.Errorf("after %v: %w", seen, ctx.Err())
		}
	}

	return seen, nil
}

func copied(ctx context.Context, c *client.Client, path string) (any, error) {
	reader, err := c.Copy(ctx, path)
	if err != nil {
		return nil, err
	}

	unzipped, err := gzip.NewReader(reader)
	if err != nil {
		return nil, err
	}

	files := map[string]int64{}
	archive := tar.NewReader(unzipped)

	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files, nil
		}

		if err != nil {
			return nil, err
		}

		files[header.Name] = header.Size
	}
}
