package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"time"

	"github.com/cosi-project/runtime/pkg/controller/generic"
	"github.com/cosi-project/runtime/pkg/resource/meta"
	"github.com/cosi-project/runtime/pkg/safe"
	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"

	"github.com/siderolabs/talos/pkg/machinery/api/common"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/client"
	v1alpha1config "github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"
	"github.com/siderolabs/talos/pkg/machinery/resources/block"
	"github.com/siderolabs/talos/pkg/machinery/resources/hardware"
	"github.com/siderolabs/talos/pkg/machinery/resources/network"
	"github.com/siderolabs/talos/pkg/machinery/resources/runtime"
)

// pingFor is how long the connection of the keepalive step stays idle; the library pings each ten seconds at most.
const pingFor = 35 * time.Second

// omni makes the calls that Omni makes to a machine of a cluster.
func omni(r *run) error {
	const limit = 20 * time.Second

	pings, err := newPinged(r.ctx)
	if err != nil {
		return err
	}

	defer pings.c.Close() //nolint:errcheck

	r.step("version", proxied(r), limit, func(ctx context.Context) (any, error) { return version(ctx, r.c) })
	r.watches(limit)
	r.step("kernel-cmdline", proxied(r), limit, func(ctx context.Context) (any, error) {
		found, err := safe.StateGetByID[*runtime.KernelCmdline](ctx, r.c.COSI, runtime.KernelCmdlineID)
		if err != nil {
			return nil, err
		}

		return found.TypedSpec().Cmdline, nil
	})

	for name, path := range map[string]string{
		"boot-id":     bootIDFile,
		"cmdline":     "/proc/cmdline",
		"kubelet-ca":  "/etc/kubernetes/pki/ca.crt",
		"apiserver":   "/system/secrets/kubernetes/kube-apiserver/ca.crt",
		"etcd-ca":     "/system/secrets/etcd/ca.crt",
		"no-such-pki": "/system/secrets/kubernetes/nosuch.crt",
	} {
		r.step("read-"+name, proxied(r), limit, func(ctx context.Context) (any, error) { return readFile(ctx, r.c, path) })
	}

	r.step("disks", proxied(r), limit, func(ctx context.Context) (any, error) {
		reply, err := r.c.Disks(ctx)

		return len(reply.GetMessages()), err
	})

	// The keys that Omni uses: labels, the reason of an installation, the identity and the token of a machine.
	for _, key := range []uint8{9, 12, 15, 16} {
		r.step(fmt.Sprintf("meta-write-%d", key), r.one(), limit, func(ctx context.Context) (any, error) {
			return nil, r.c.MetaWrite(ctx, key, []byte("machineLabels: {}"))
		})
		r.step(fmt.Sprintf("meta-delete-%d", key), r.one(), limit, func(ctx context.Context) (any, error) {
			return nil, r.c.MetaDelete(ctx, key)
		})
	}

	r.step("apply", proxied(r), time.Minute, func(ctx context.Context) (any, error) {
		return applied(ctx, r.c, machine.ApplyConfigurationRequest_AUTO, withLabel("omni"))
	})
	r.step("apply-same", proxied(r), time.Minute, func(ctx context.Context) (any, error) {
		return applied(ctx, r.c, machine.ApplyConfigurationRequest_AUTO, func(*v1alpha1config.Config) error { return nil })
	})
	r.step("apply-staged", proxied(r), time.Minute, func(ctx context.Context) (any, error) {
		return applied(ctx, r.c, machine.ApplyConfigurationRequest_STAGED, withLabel("staged"))
	})
	r.lifecycle(limit)
	r.step("keepalive", r.ctx, pingFor+limit, pings.wait)

	return nil
}

// proxied is the metadata that Omni's proxy passes on beside the node.
func proxied(r *run) context.Context {
	return metadata.AppendToOutgoingContext(r.one(), "cluster", "clients", "context", "clients", "runtime", "Talos")
}

// watches follows every kind that Omni follows, as far as the machine has registered it.
func (r *run) watches(limit time.Duration) {
	types := map[string]bool{}

	r.step("resource-definitions", r.one(), limit, func(ctx context.Context) (any, error) {
		definitions, err := safe.StateListAll[*meta.ResourceDefinition](ctx, r.c.COSI)
		if err != nil {
			return nil, err
		}

		for definition := range definitions.All() {
			types[definition.TypedSpec().Type] = true
		}

		return len(types), nil
	})

	watched[*network.HostnameStatus](r, "hostname", limit)
	watched[*network.LinkStatus](r, "links", limit)
	watched[*network.RouteStatus](r, "routes", limit)
	watched[*network.NodeAddress](r, "addresses", limit)
	watched[*hardware.Processor](r, "processors", limit)
	watched[*hardware.MemoryModule](r, "memory-modules", limit)
	watched[*runtime.PlatformMetadata](r, "platform", limit)
	watched[*runtime.MetaKey](r, "meta-keys", limit)
	watched[*runtime.ExtensionStatus](r, "extensions", limit)
	watched[*runtime.MachineStatus](r, "machine-status", limit)
	watched[*runtime.SecurityState](r, "security", limit)
	watched[*runtime.Diagnostic](r, "diagnostics", limit)
	watched[*block.Disk](r, "disks", limit)
	watched[*block.SystemDisk](r, "system-disk", limit)

	if types[runtime.VersionType] {
		watched[*runtime.Version](r, "version", limit)
	}
}

// watched follows a kind until all that was there has arrived, and compares with a list.
func watched[T generic.ResourceWithRD](r *run, name string, limit time.Duration) {
	r.step("watch-"+name, r.one(), limit, func(ctx context.Context) (any, error) {
		arrived, err := bootstrapped[T](ctx, r.c)
		if err != nil {
			return nil, err
		}

		listed, err := ids[T](ctx, r.c)
		if err != nil {
			return nil, err
		}

		return map[string]any{"watched": arrived, "listed": listed}, nil
	})
}

// lifecycle makes the calls of an installation, which turns into an upgrade when the machine is installed.
func (r *run) lifecycle(limit time.Duration) {
	inMemory := &common.ContainerdInstance{Driver: common.ContainerDriver_CONTAINERD, Namespace: common.ContainerdNamespace_NS_SYSTEM}
	source := &machine.InstallArtifactsSource{ImageName: *image}

	r.step("pull", r.one(), time.Minute, func(ctx context.Context) (any, error) { return pulled(ctx, r.c, inMemory, *image) })
	r.step("install", r.one(), limit, func(ctx context.Context) (any, error) {
		stream, err := r.c.LifecycleClient.Install(ctx, &machine.LifecycleServiceInstallRequest{
			Containerd: inMemory, Source: source, Destination: &machine.InstallDestination{Disk: "/dev/vda"},
		})
		if err != nil {
			return nil, err
		}

		_, err = stream.Recv()
		if errors.Is(err, io.EOF) {
			err = nil
		}

		return nil, err
	})
	r.step("upgrade", r.one(), limit, func(ctx context.Context) (any, error) {
		return upgraded(ctx, r.c, &machine.LifecycleServiceUpgradeRequest{Containerd: inMemory, Source: source})
	})
}

// pinged is a connection with keepalive pings that carries no call.
type pinged struct {
	c     *client.Client
	since time.Time
	dials atomic.Int32
}

func newPinged(ctx context.Context) (*pinged, error) {
	p := &pinged{since: time.Now()}

	c, err := connect(ctx, *talosconfig,
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: time.Second, Timeout: 5 * time.Second, PermitWithoutStream: true}),
		grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
			p.dials.Add(1)

			return (&net.Dialer{}).DialContext(ctx, "tcp", address)
		}))
	if err != nil {
		return nil, err
	}

	p.c = c
	_, err = c.Version(ctx)

	return p, err
}

// wait lets the connection be idle, and returns how many connections it took until a call was answered.
func (p *pinged) wait(ctx context.Context) (any, error) {
	select {
	case <-time.After(time.Until(p.since.Add(pingFor))):
	case <-ctx.Done():
		return nil, ctx.Err()
	}

	_, err := p.c.Version(ctx)

	return p.dials.Load(), err
}
