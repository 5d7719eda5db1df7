package main

import (
	"context"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/client"
	"github.com/siderolabs/talos/pkg/machinery/resources/runtime"
)

// upgrade makes the calls of upgrade operators: what they look at before an upgrade, and the upgrade in each of its ways.
func upgrade(r *run) error {
	const limit = 20 * time.Second

	r.step("version", r.all(), limit, func(ctx context.Context) (any, error) { return version(ctx, r.c) })
	r.step("configuration", r.one(), limit, func(ctx context.Context) (any, error) {
		found, err := current(ctx, r.c)
		if err != nil {
			return nil, err
		}

		return map[string]any{
			"type":  found.Config().Machine().Type().String(),
			"image": found.Config().Machine().Install().Image(),
		}, nil
	})
	r.step("nodename", r.one(), limit, func(ctx context.Context) (any, error) { return nodename(ctx, r.c) })
	r.step("extensions", r.one(), limit, func(ctx context.Context) (any, error) { return ids[*runtime.ExtensionStatus](ctx, r.c) })
	r.step("platform", r.one(), limit, func(ctx context.Context) (any, error) { return ids[*runtime.PlatformMetadata](ctx, r.c) })
	r.step("machine-status", r.one(), limit, func(ctx context.Context) (any, error) { return untilReady(ctx, r.c) })
	r.step("etcd-status", r.one(), limit, func(ctx context.Context) (any, error) {
		reply, err := r.c.EtcdStatus(ctx)
		if err != nil {
			return nil, err
		}

		status := reply.GetMessages()[0].GetMemberStatus()

		return map[string]any{
			"leader": status.GetLeader() == status.GetMemberId(), "learner": status.GetIsLearner(), "errors": status.GetErrors(),
			"behind": status.GetRaftIndex() - status.GetRaftAppliedIndex(), "size": status.GetDbSize() > 0,
		}, nil
	})
	r.step("etcd-alarms", r.one(), limit, func(ctx context.Context) (any, error) {
		reply, err := r.c.EtcdAlarmList(ctx)
		count := 0

		for _, message := range reply.GetMessages() {
			count += len(message.GetMemberAlarms())
		}

		return count, err
	})
	r.step("apply-no-reboot", r.one(), time.Minute, func(ctx context.Context) (any, error) {
		return applied(ctx, r.c, machine.ApplyConfigurationRequest_NO_REBOOT, withLabel("upgrade"))
	})
	r.upgrades(limit)

	return nil
}

// upgrades requests an upgrade with each of the flags that operators have.
func (r *run) upgrades(limit time.Duration) {
	named := client.WithUpgradeImage(*image)

	for name, options := range map[string][]client.UpgradeOption{
		"plain":      {named},
		"preserve":   {named, client.WithUpgradePreserve(true)},
		"stage":      {named, client.WithUpgradeStage(true)},
		"force":      {named, client.WithUpgradeForce(true)},
		"powercycle": {named, client.WithUpgradeRebootMode(machine.UpgradeRequest_POWERCYCLE)},
		"all":        {named, client.WithUpgradePreserve(true), client.WithUpgradeStage(true), client.WithUpgradeForce(true)},
		"no-image":   {},
	} {
		r.step("upgrade-"+name, r.one(), limit, func(ctx context.Context) (any, error) {
			return r.c.UpgradeWithOptions(ctx, options...) //nolint:staticcheck
		})
	}

	r.step("lifecycle-upgrade", r.one(), limit, func(ctx context.Context) (any, error) {
		return upgraded(ctx, r.c, &machine.LifecycleServiceUpgradeRequest{
			Containerd: systemImages, Source: &machine.InstallArtifactsSource{ImageName: *image},
		})
	})
	r.step("rollback", r.one(), limit, func(ctx context.Context) (any, error) { return nil, r.c.Rollback(ctx) })
}
