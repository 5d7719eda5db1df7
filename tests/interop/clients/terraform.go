package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/cosi-project/runtime/pkg/safe"
	"google.golang.org/grpc/codes"

	"github.com/siderolabs/talos/pkg/machinery/api/common"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/client"
	"github.com/siderolabs/talos/pkg/machinery/config/encoder"
	v1alpha1config "github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"
	"github.com/siderolabs/talos/pkg/machinery/resources/config"
	"github.com/siderolabs/talos/pkg/machinery/resources/k8s"
)

// systemImages is where Terraform's provider and upgrade operators have an installer image pulled to.
var systemImages = &common.ContainerdInstance{Driver: common.ContainerDriver_CRI, Namespace: common.ContainerdNamespace_NS_SYSTEM}

// terraform makes the calls of the resources of Terraform's provider, in the order of a plan for a machine that exists.
func terraform(r *run) error {
	const limit = 20 * time.Second

	r.step("version", r.one(), limit, func(ctx context.Context) (any, error) { return version(ctx, r.c) })
	r.step("disks", r.one(), limit, func(ctx context.Context) (any, error) {
		reply, err := r.c.Disks(ctx)

		return len(reply.GetMessages()), err
	})
	r.step("apply", r.one(), time.Minute, func(ctx context.Context) (any, error) {
		return applied(ctx, r.c, machine.ApplyConfigurationRequest_AUTO, withLabel("terraform"))
	})

	for name, data := range map[string]string{
		"not-yaml":      "machine: [",
		"empty":         "",
		"unknown-field": "version: v1alpha1\nmachine:\n  nosuch: 1\n",
		"no-endpoint":   "version: v1alpha1\nmachine:\n  type: worker\ncluster: {}\n",
		"unknown-kind":  "apiVersion: v1alpha1\nkind: NoSuchConfig\n",
	} {
		r.step("apply-"+name, r.one(), limit, func(ctx context.Context) (any, error) {
			return r.c.ApplyConfiguration(ctx, &machine.ApplyConfigurationRequest{Data: []byte(data)})
		})
	}

	r.step("bootstrap", r.one(), limit, func(ctx context.Context) (any, error) {
		return nil, r.c.Bootstrap(ctx, &machine.BootstrapRequest{})
	})
	r.step("kubeconfig", r.one(), limit, func(ctx context.Context) (any, error) {
		data, err := r.c.Kubeconfig(ctx)

		return string(data), err
	})
	r.step("nodename", r.one(), limit, func(ctx context.Context) (any, error) { return nodename(ctx, r.c) })
	r.step("pull", r.one(), time.Minute, func(ctx context.Context) (any, error) { return pulled(ctx, r.c, systemImages, *present) })
	r.step("pull-missing", r.one(), time.Minute, func(ctx context.Context) (any, error) { return pulled(ctx, r.c, systemImages, *image) })
	installed := r.step("upgrade", r.one(), limit, func(ctx context.Context) (any, error) {
		return upgraded(ctx, r.c, &machine.LifecycleServiceUpgradeRequest{
			Containerd: systemImages, Source: &machine.InstallArtifactsSource{ImageName: *image},
		})
	})

	if installed == codes.Unimplemented {
		r.step("upgrade-legacy", r.one(), limit, func(ctx context.Context) (any, error) {
			return r.c.UpgradeWithOptions(ctx, client.WithUpgradeImage(*image)) //nolint:staticcheck
		})
	}

	r.health()

	return nil
}

func version(ctx context.Context, c *client.Client) (any, error) {
	reply, err := c.Version(ctx)
	if err != nil {
		return nil, err
	}

	tags := []string{}
	for _, message := range reply.GetMessages() {
		tags = append(tags, message.GetVersion().GetTag())
	}

	return tags, nil
}

func nodename(ctx context.Context, c *client.Client) (string, error) {
	found, err := safe.StateGetByID[*k8s.Nodename](ctx, c.COSI, k8s.NodenameID)
	if err != nil {
		return "", err
	}

	return found.TypedSpec().Nodename, nil
}

// withLabel gives the Kubernetes node a label, which needs no restart of the machine.
func withLabel(name string) func(*v1alpha1config.Config) error {
	return func(config *v1alpha1config.Config) error {
		if config.MachineConfig.MachineNodeLabels == nil {
			config.MachineConfig.MachineNodeLabels = map[string]string{}
		}

		config.MachineConfig.MachineNodeLabels["clients.test/"+name] = "yes"

		return nil
	}
}

// current is the configuration of the node, as the library decodes it.
func current(ctx context.Context, c *client.Client) (*config.MachineConfig, error) {
	return safe.StateGetByID[*config.MachineConfig](ctx, c.COSI, config.ActiveID)
}

// applied patches the configuration of the node, applies the whole, and returns every message of the answer.
func applied(
	ctx context.Context, c *client.Client, mode machine.ApplyConfigurationRequest_Mode, patch func(*v1alpha1config.Config) error,
) (any, error) {
	present, err := current(ctx, c)
	if err != nil {
		return nil, fmt.Errorf("get configuration: %w", err)
	}

	patched, err := present.Provider().PatchV1Alpha1(patch)
	if err != nil {
		return nil, fmt.Errorf("patch: %w", err)
	}

	data, err := patched.EncodeBytes(encoder.WithComments(encoder.CommentsDisabled))
	if err != nil {
		return nil, err
	}

	reply, err := c.ApplyConfiguration(ctx, &machine.ApplyConfigurationRequest{Mode: mode, Data: data})
	if err != nil {
		return nil, err
	}

	messages := []map[string]any{}
	for _, message := range reply.GetMessages() {
		messages = append(messages, map[string]any{
			"mode": message.GetMode().String(), "details": message.GetModeDetails(), "warnings": message.GetWarnings(),
		})
	}

	return messages, nil
}

// pulled is the name of the image at the end of a pull.
func pulled(ctx context.Context, c *client.Client, place *common.ContainerdInstance, reference string) (string, error) {
	stream, err := c.ImageClient.Pull(ctx, &machine.ImageServicePullRequest{Containerd: place, ImageRef: reference})
	if err != nil {
		return "", err
	}

	name := ""

	for {
		reply, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return name, nil
		}

		if err != nil {
			return "", err
		}

		if reply.GetName() != "" {
			name = reply.GetName()
		}
	}
}

// upgraded is the exit code at the end of an upgrade.
func upgraded(ctx context.Context, c *client.Client, request *machine.LifecycleServiceUpgradeRequest) (int32, error) {
	stream, err := c.LifecycleClient.Upgrade(ctx, request)
	if err != nil {
		return 0, err
	}

	code := int32(0)

	for {
		reply, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return code, nil
		}

		if err != nil {
			return 0, err
		}

		code = reply.GetProgress().GetExitCode()
	}
}

func readFile(ctx context.Context, c *client.Client, path string) (string, error) {
	reader, err := c.Read(ctx, path)
	if err != nil {
		return "", err
	}

	text, err := io.ReadAll(reader)
	if err != nil {
		return "", err
	}

	return string(text), reader.Close()
}

const bootIDFile = "/proc/sys/kernel/random/boot_id"
