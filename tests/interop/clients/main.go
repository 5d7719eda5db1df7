// Clients makes the calls of programs that manage machines, with the field's own Go client library: each scenario is one program,
// with its time limits and the way it reads the answers. Every step prints one line of JSON: {"step", "code", "message", "value"}.
//
//	clients -talosconfig F -endpoint E -node N -nodes N,N [-foreign F] [-kubelet NAME] SCENARIO
//
// Scenarios: terraform, reboot, capi, omni, refused, upgrade.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/cosi-project/runtime/pkg/state"
	"github.com/siderolabs/talos/pkg/machinery/client"
	clientconfig "github.com/siderolabs/talos/pkg/machinery/client/config"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
)

var (
	talosconfig = flag.String("talosconfig", "", "client configuration")
	foreign     = flag.String("foreign", "", "client configuration whose certificate another authority issued")
	endpoint    = flag.String("endpoint", "", "host of the API")
	node        = flag.String("node", "", "the node that single calls are for")
	nodes       = flag.String("nodes", "", "all nodes, comma separated")
	image       = flag.String("image", "", "installer image of an upgrade")
	present     = flag.String("present", "", "image that the node already has")
	timeout     = flag.Duration("timeout", 4*time.Minute, "limit of the whole scenario")
)

// run is one scenario at work.
type run struct {
	ctx context.Context
	c   *client.Client
}

// result is what one step printed.
type result struct {
	Step    string `json:"step"`
	Code    string `json:"code"`
	Message string `json:"message,omitempty"`
	Value   any    `json:"value,omitempty"`
}

var scenarios = map[string]func(*run) error{
	"terraform": terraform,
	"reboot":    reboot,
	"capi":      capi,
	"omni":      omni,
	"refused":   refused,
	"upgrade":   upgrade,
}

func main() {
	flag.Parse()

	scenario, ok := scenarios[flag.Arg(0)]
	if !ok {
		fmt.Fprintf(os.Stderr, "no scenario %q\n", flag.Arg(0))
		os.Exit(1)
	}

	ctx, cancel := context.WithTimeout(context.Background(), *timeout)
	defer cancel()

	if err := begin(ctx, scenario); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func begin(ctx context.Context, scenario func(*run) error) error {
	c, err := connect(ctx, *talosconfig)
	if err != nil {
		return err
	}

	defer c.Close() //nolint:errcheck

	return scenario(&run{ctx: ctx, c: c})
}

func connect(ctx context.Context, file string, options ...grpc.DialOption) (*client.Client, error) {
	config, err := clientconfig.Open(file)
	if err != nil {
		return nil, err
	}

	return client.New(ctx, client.WithConfig(config), client.WithEndpoints(*endpoint), client.WithGRPCDialOptions(options...))
}

// one is the context of a call for the single node.
func (r *run) one() context.Context { return client.WithNode(r.ctx, *node) }

// all is the context of a call for every node.
func (r *run) all() context.Context { return client.WithNodes(r.ctx, strings.Split(*nodes, ",")...) }

// step makes a call within a limit and prints how it ended; a refused call ends the step, not the scenario.
func (r *run) step(name string, ctx context.Context, limit time.Duration, call func(context.Context) (any, error)) codes.Code {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()

	value, err := call(ctx)
	printed := result{Step: name, Code: codes.OK.String(), Value: value}
	code := codes.OK

	if err != nil {
		code = client.StatusCode(err)
		if errors.Is(err, context.DeadlineExceeded) {
			code = codes.DeadlineExceeded
		} else if state.IsNotFoundError(err) {
			code = codes.NotFound
		}

		printed.Code, printed.Message = code.String(), err.Error()
	}

	line, err := json.Marshal(printed)
	if err != nil {
		line = fmt.Appendf(nil, `{"step":%q,"code":"Internal","message":%q}`, name, err.Error())
	}

	fmt.Println(string(line))

	return code
}
