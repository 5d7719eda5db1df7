package main

import (
	"context"
	"strings"
	"time"

	"github.com/cosi-project/runtime/pkg/safe"

	"github.com/siderolabs/talos/pkg/machinery/client"
	"github.com/siderolabs/talos/pkg/machinery/constants"
	"github.com/siderolabs/talos/pkg/machinery/resources/k8s"
	"github.com/siderolabs/talos/pkg/machinery/resources/runtime"
)

// health makes the calls of the checks that clients run themselves before they call a cluster healthy.
func (r *run) health() {
	const limit = 20 * time.Second

	for _, id := range []string{"apid", "kubelet"} {
		r.step("health-"+id, r.all(), limit, func(ctx context.Context) (any, error) { return service(ctx, r.c, id) })
	}

	r.step("health-etcd", r.one(), limit, func(ctx context.Context) (any, error) { return service(ctx, r.c, "etcd") })
	r.step("health-members", r.one(), limit, func(ctx context.Context) (any, error) { return members(ctx, r.c) })
	r.step("health-memory", r.all(), limit, func(ctx context.Context) (any, error) {
		reply, err := r.c.Memory(ctx)
		sizes := map[string]bool{}

		for _, message := range reply.GetMessages() {
			sizes[message.GetMetadata().GetHostname()] = message.GetMeminfo().GetMemtotal() > 0
		}

		return sizes, err
	})
	r.step("health-mounts", r.all(), limit, func(ctx context.Context) (any, error) {
		reply, err := r.c.Mounts(ctx)
		sizes := map[string]bool{}

		for _, message := range reply.GetMessages() {
			for _, mount := range message.GetStats() {
				if mount.GetMountedOn() == constants.EphemeralMountPoint {
					sizes[message.GetMetadata().GetHostname()] = mount.GetSize() > 0
				}
			}
		}

		return sizes, err
	})

	for _, each := range strings.Split(*nodes, ",") {
		ctx := client.WithNode(r.ctx, each)

		r.step("health-diagnostics-"+each, ctx, limit, func(ctx context.Context) (any, error) {
			return ids[*runtime.Diagnostic](ctx, r.c)
		})
		r.step("health-ready-"+each, ctx, limit, func(ctx context.Context) (any, error) {
			status, err := safe.StateGetByID[*runtime.MachineStatus](ctx, r.c.COSI, runtime.MachineStatusID)
			if err != nil {
				return nil, err
			}

			return map[string]any{"stage": status.TypedSpec().Stage.String(), "ready": status.TypedSpec().Status.Ready}, nil
		})
	}

	r.step("health-static-pods", r.one(), limit, func(ctx context.Context) (any, error) { return staticPods(ctx, r.c) })
}

// staticPods lists the static pods until those of the control plane are there: clients repeat a check that fails.
func staticPods(ctx context.Context, c *client.Client) (any, error) {
	for {
		found, err := ids[*k8s.StaticPodStatus](ctx, c)
		if err != nil || len(found) >= 3 {
			return found, err
		}

		select {
		case <-time.After(500 * time.Millisecond):
		case <-ctx.Done():
			return found, ctx.Err()
		}
	}
}
