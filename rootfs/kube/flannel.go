package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/flannel-io/flannel/pkg/backend"
	_ "github.com/flannel-io/flannel/pkg/backend/hostgw"
	_ "github.com/flannel-io/flannel/pkg/backend/vxlan"
	_ "github.com/flannel-io/flannel/pkg/backend/wireguard"
	"github.com/flannel-io/flannel/pkg/ip"
	"github.com/flannel-io/flannel/pkg/ipmatch"
	"github.com/flannel-io/flannel/pkg/subnet"
	"github.com/flannel-io/flannel/pkg/subnet/kube"
	"github.com/flannel-io/flannel/pkg/trafficmngr"
	"github.com/flannel-io/flannel/pkg/trafficmngr/iptables"
	"github.com/flannel-io/flannel/pkg/trafficmngr/nftables"
	"k8s.io/klog/v2"
)

// flannelVersion is the release whose packages are linked in; the build sets it.
var flannelVersion = "unknown"

// names collects a flag that may be given more than once.
type names []string

func (n *names) String() string { return strings.Join(*n, ",") }

func (n *names) Set(value string) error {
	*n = append(*n, value)

	return nil
}

// flannelOptions are flanneld's flags, as far as they concern leases kept in the Kubernetes API.
type flannelOptions struct {
	annotationPrefix, apiURL, kubeconfig, networkConfig, subnetFile string
	conflist                                                        string
	interfaces, interfacePatterns                                   names
	canReach, publicIP, publicIPv6                                  string
	masquerade, noRandomPorts, forwardRules, blackhole              bool
	kubeLeases, networkAvailable, version                           bool
	healthAddress                                                   string
	healthPort, resync                                              int
}

// parseFlannel reads the command line, then FLANNELD_* variables for the flags not given there.
func parseFlannel(arguments []string) (flannelOptions, error) {
	var o flannelOptions

	flags := flag.NewFlagSet("flanneld", flag.ContinueOnError)
	flags.BoolVar(&o.kubeLeases, "kube-subnet-mgr", false, "keep the nodes' subnets in the Kubernetes API (required: there is no other store here)")
	flags.StringVar(&o.apiURL, "kube-api-url", "", "where the Kubernetes API is, when not in a pod")
	flags.StringVar(&o.kubeconfig, "kubeconfig-file", "", "kubeconfig, when not in a pod")
	flags.StringVar(&o.annotationPrefix, "kube-annotation-prefix", "flannel.alpha.coreos.com", "prefix of the annotations on nodes")
	flags.BoolVar(&o.networkAvailable, "set-node-network-unavailable", true, "clear the node's NetworkUnavailable condition when ready")
	flags.StringVar(&o.networkConfig, "net-config-path", "/etc/kube-flannel/net-conf.json", "the network's configuration")
	flags.StringVar(&o.conflist, "ichor-conflist", "", "where to write the CNI configuration for this node's subnet; none is written when empty")
	flags.StringVar(&o.subnetFile, "subnet-file", "/run/flannel/subnet.env", "where this node's subnet is written for the CNI configuration")
	flags.Var(&o.interfaces, "iface", "interface, by name or address, that reaches the other nodes; the first that matches is used")
	flags.Var(&o.interfacePatterns, "iface-regex", "pattern of the interface's name or address, tried after --iface")
	flags.StringVar(&o.canReach, "iface-can-reach", "", "use the interface by which this address is reached")
	flags.StringVar(&o.publicIP, "public-ip", "", "IPv4 address by which other nodes reach this one")
	flags.StringVar(&o.publicIPv6, "public-ipv6", "", "IPv6 address by which other nodes reach this one")
	flags.BoolVar(&o.masquerade, "ip-masq", false, "masquerade what leaves the pod network")
	flags.BoolVar(&o.noRandomPorts, "ip-masq-fully-random-disable", false, "masquerade without fully random ports")
	flags.BoolVar(&o.forwardRules, "iptables-forward-rules", true, "accept forwarded packets of the pod network")
	flags.IntVar(&o.resync, "iptables-resync", 5, "seconds between looks at the packet filter rules")
	flags.BoolVar(&o.blackhole, "ip-blackhole-route", false, "drop packets to pods of this node that do not exist")
	flags.StringVar(&o.healthAddress, "healthz-ip", "0.0.0.0", "address of the health answer")
	flags.IntVar(&o.healthPort, "healthz-port", 0, "port of the health answer; 0 for none")
	flags.BoolVar(&o.version, "version", false, "print the version and exit")

	for _, name := range []string{"v", "vmodule"} {
		known := flag.Lookup(name)
		if known == nil {
			logging := flag.NewFlagSet("", flag.ContinueOnError)
			klog.InitFlags(logging)
			known = logging.Lookup(name)
		}

		flags.Var(known.Value, name, known.Usage)
	}

	if err := flags.Parse(arguments); err != nil {
		return o, err
	}

	given := map[string]bool{}
	flags.Visit(func(f *flag.Flag) { given[f.Name] = true })

	var failure error
	flags.VisitAll(func(f *flag.Flag) {
		variable := "FLANNELD_" + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
		if value, set := os.LookupEnv(variable); set && !given[f.Name] {
			if err := f.Value.Set(value); err != nil {
				failure = errors.Join(failure, fmt.Errorf("read %s=%q: %w", variable, value, err))
			}
		}
	})

	if failure == nil && !o.kubeLeases && !o.version {
		failure = errors.New("--kube-subnet-mgr is required: leases are kept in the Kubernetes API only")
	}

	return o, failure
}

// runFlannel is flanneld: it leases this node's pod subnet, writes it down, and keeps the way to the other nodes' pods.
func runFlannel() {
	options, err := parseFlannel(os.Args[1:])

	switch {
	case errors.Is(err, flag.ErrHelp):
		os.Exit(0)
	case err != nil:
		fmt.Fprintf(os.Stderr, "flanneld: %v\n", err)
		os.Exit(1)
	case options.version:
		fmt.Println(flannelVersion)
		os.Exit(0)
	}

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err = connectPods(ctx, options)
	interrupted := ctx.Err() != nil
	stop()
	klog.Flush()

	if err != nil && !interrupted {
		fmt.Fprintf(os.Stderr, "flanneld: %v\n", err)
		os.Exit(1)
	}
}

func connectPods(parent context.Context, o flannelOptions) error {
	// Whatever was started ends with this function.
	ctx, cancel := context.WithCancel(parent)

	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()

	leases, err := kube.NewSubnetManager(ctx, o.apiURL, o.kubeconfig, o.annotationPrefix, o.networkConfig, o.networkAvailable)
	if err != nil {
		// A large cluster may take longer than flannel waits to list its nodes; the list goes on arriving.
		if leases == nil || os.Getenv("CONT_WHEN_CACHE_NOT_READY") != "true" || !errors.Is(err, context.DeadlineExceeded) {
			return fmt.Errorf("reach the Kubernetes API: %w", err)
		}

		klog.Warningf("going on before all nodes are known: %v", err)
	}

	if o.healthPort > 0 {
		if err := answerHealth(ctx, &running, net.JoinHostPort(o.healthAddress, strconv.Itoa(o.healthPort))); err != nil {
			return err
		}
	}

	config, err := leases.GetNetworkConfig(ctx)
	if err != nil {
		return fmt.Errorf("read the network configuration %q: %w", o.networkConfig, err)
	}

	outside, err := outsideInterface(ctx, leases, config, o)
	if err != nil {
		return err
	}

	kind, err := backend.NewManager(ctx, leases, outside).GetBackend(config.BackendType)
	if err != nil {
		return fmt.Errorf("backend %q (there are vxlan, host-gw and wireguard): %w", config.BackendType, err)
	}

	network, err := kind.RegisterNetwork(ctx, &running, config)
	if err != nil {
		return fmt.Errorf("lease a subnet: %w", err)
	}

	if err := filterPackets(ctx, config, network, o); err != nil {
		return err
	}

	lease := network.Lease()
	if err := leases.HandleSubnetFile(o.subnetFile, config, o.masquerade, lease.Subnet, lease.IPv6Subnet, network.MTU()); err != nil {
		return fmt.Errorf("write %q: %w", o.subnetFile, err)
	}

	if o.conflist != "" {
		if err := writeConflist(o.conflist, config, lease.Subnet, lease.IPv6Subnet, network.MTU()); err != nil {
			return fmt.Errorf("write %q: %w", o.conflist, err)
		}
	}

	klog.Infof("wrote %s, running %s on %s", o.subnetFile, config.BackendType, outside.IfaceName)
	running.Go(func() { network.Run(ctx) })

	if o.blackhole {
		running.Go(func() { keepBlackhole(ctx, config, network, o.resync) })
	}

	if err := leases.CompleteLease(ctx, lease, &running); err != nil {
		klog.Errorf("the node's NetworkUnavailable condition stays: %v", err)
	}

	<-ctx.Done()

	return nil
}

// writeConflist writes the CNI configuration of a bridge with this node's subnet, in one step: containerd reads it the
// moment it is there. The subnet's addresses in use are kept in memory, for no pod outlives a boot.
func writeConflist(path string, config *subnet.Config, v4 ip.IP4Net, v6 ip.IP6Net, mtu int) error {
	type object = map[string]any

	var (
		ranges [][]object
		routes []object
	)

	if config.EnableIPv4 {
		ranges = append(ranges, []object{{"subnet": v4.String()}})
		routes = append(routes, object{"dst": "0.0.0.0/0"})
	}

	if config.EnableIPv6 {
		ranges = append(ranges, []object{{"subnet": v6.String()}})
		routes = append(routes, object{"dst": "::/0"})
	}

	ports := object{"type": "portmap", "capabilities": object{"portMappings": true}}
	if config.EnableNFTables {
		ports["backend"] = "nftables"
	}

	text, err := json.MarshalIndent(object{
		"name":       "cbr0",
		"cniVersion": "1.0.0",
		"plugins": []object{
			{
				"type":             "bridge",
				"bridge":           "cni0",
				"mtu":              mtu,
				"isGateway":        true,
				"isDefaultGateway": true,
				"hairpinMode":      true,
				"ipMasq":           false,
				"ipam":             object{"type": "host-local", "dataDir": "/run/cni/networks", "ranges": ranges, "routes": routes},
			},
			ports,
		},
	}, "", "  ")
	if err != nil {
		return err
	}

	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}

	next := path + ".next"
	if err := os.WriteFile(next, append(text, '\n'), 0o644); err != nil {
		return err
	}

	return os.Rename(next, path)
}

// outsideInterface finds the interface over which other nodes are reached: that of the options, else that of the default route,
// else that of the node's own address.
func outsideInterface(ctx context.Context, leases subnet.Manager, config *subnet.Config, o flannelOptions) (*backend.ExternalInterface, error) {
	family, err := ipmatch.GetIPFamily(config.EnableIPv4, config.EnableIPv6)
	if err != nil {
		return nil, fmt.Errorf("the network configuration enables neither IPv4 nor IPv6: %w", err)
	}

	public := ipmatch.PublicIPOpts{PublicIP: o.publicIP, PublicIPv6: o.publicIPv6}
	if v4, v6 := leases.GetStoredPublicIP(ctx); v4 != "" || v6 != "" {
		if v4 != "" {
			public.PublicIP = v4
		}

		if v6 != "" {
			public.PublicIPv6 = v6
		}
	}

	type question struct{ name, pattern, reaches string }

	var questions []question
	for _, name := range o.interfaces {
		questions = append(questions, question{name: name})
	}

	for _, pattern := range o.interfacePatterns {
		questions = append(questions, question{pattern: pattern})
	}

	if o.canReach != "" {
		questions = append(questions, question{reaches: o.canReach})
	}

	if len(questions) == 0 {
		address := public.PublicIP
		if address == "" {
			address = public.PublicIPv6
		}

		questions = []question{{name: address}}

		// A network that leads nowhere has no default route; its nodes reach each other by their own addresses.
		if own := os.Getenv("NODE_IP"); address == "" && own != "" {
			questions = append(questions, question{name: own})
		}
	}

	var failures error

	for _, q := range questions {
		found, err := ipmatch.LookupExtIface(q.name, q.pattern, q.reaches, family, public)
		if err == nil && found != nil {
			return found, nil
		}

		failures = errors.Join(failures, err)
	}

	return nil, fmt.Errorf("find the interface that reaches the other nodes: %w", failures)
}

// filterPackets removes the rules of the packet filter not chosen and sets up those of the chosen one.
func filterPackets(ctx context.Context, config *subnet.Config, network backend.Network, o flannelOptions) error {
	var used, unused trafficmngr.TrafficManager = &iptables.IPTablesManager{}, &nftables.NFTablesManager{}
	if config.EnableNFTables {
		used, unused = unused, used
	}

	if err := unused.CleanUp(ctx); err != nil {
		klog.Warningf("rules of the packet filter that is not used may be left: %v", err)
	}

	if err := used.Init(ctx); err != nil {
		return fmt.Errorf("open the packet filter: %w", err)
	}

	if o.masquerade {
		before, err := readSubnetFile(o.subnetFile)
		if err != nil {
			klog.Warningf("what the last run masqueraded is not known: %v", err)
		}

		if err := used.SetupAndEnsureMasqRules(ctx,
			config.Network, before.v4["FLANNEL_SUBNET"], before.v4["FLANNEL_NETWORK"],
			config.IPv6Network, before.v6["FLANNEL_IPV6_SUBNET"], before.v6["FLANNEL_IPV6_NETWORK"],
			network.Lease(), o.resync, o.noRandomPorts); err != nil {
			return fmt.Errorf("masquerade: %w", err)
		}
	}

	if o.forwardRules {
		used.SetupAndEnsureForwardRules(ctx, config.Network, config.IPv6Network, o.resync)
	}

	return nil
}

// networks are the values of a subnet file by their names.
type networks struct {
	v4 map[string]ip.IP4Net
	v6 map[string]ip.IP6Net
}

// readSubnetFile reads what the last run wrote; nothing is there on the first.
func readSubnetFile(path string) (networks, error) {
	// An empty network is not the zero value of an IPv6 network: its address is a pointer.
	none := func() ip.IP6Net { return ip.IP6Net{IP: new(ip.IP6)} }
	found := networks{v4: map[string]ip.IP4Net{}, v6: map[string]ip.IP6Net{
		"FLANNEL_IPV6_SUBNET": none(), "FLANNEL_IPV6_NETWORK": none(),
	}}

	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return found, nil
	}

	if err != nil {
		return found, err
	}

	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")

		_, network, err := net.ParseCIDR(value)
		if err != nil {
			continue
		}

		if network.IP.To4() != nil {
			found.v4[name] = ip.FromIPNet(network)
		} else {
			found.v6[name] = ip.FromIP6Net(network)
		}
	}

	return found, nil
}

// keepBlackhole puts the route back that drops packets to this node's pods when no bridge takes them.
func keepBlackhole(ctx context.Context, config *subnet.Config, network backend.Network, seconds int) {
	for {
		if config.EnableIPv4 {
			if err := ip.AddBlackholeV4Route(network.Lease().Subnet.ToIPNet()); err != nil {
				klog.Errorf("blackhole route: %v", err)
			}
		}

		if config.EnableIPv6 {
			if err := ip.AddBlackholeV6Route(network.Lease().IPv6Subnet.ToIPNet()); err != nil {
				klog.Errorf("IPv6 blackhole route: %v", err)
			}
		}

		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Duration(seconds) * time.Second):
		}
	}
}

// answerHealth answers /healthz with 200 for as long as flanneld runs.
func answerHealth(ctx context.Context, running *sync.WaitGroup, address string) error {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return fmt.Errorf("listen for health checks: %w", err)
	}

	routes := http.NewServeMux()
	routes.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	server := &http.Server{Handler: routes, ReadHeaderTimeout: 5 * time.Second}

	running.Go(func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			klog.Errorf("health checks: %v", err)
		}
	})
	running.Go(func() {
		<-ctx.Done()

		ending, cancel := context.WithTimeout(context.Background(), 3*time.Second)
		defer cancel()

		_ = server.Shutdown(ending)
	})

	return nil
}
