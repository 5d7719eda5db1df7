// Containerd and the shim that stays with each pod in one file, since most of the one is in the other: the name it is
// called by decides. The shim starts itself again by the path of its file, so its name must be a hard link.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2/manager"
	"github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2/task"
	_ "github.com/containerd/containerd/v2/cmd/containerd/builtins"
	"github.com/containerd/containerd/v2/cmd/containerd/command"
	"github.com/containerd/containerd/v2/pkg/imageverifier"
	"github.com/containerd/containerd/v2/pkg/shim"
	"github.com/containerd/containerd/v2/pkg/shutdown"
	"github.com/containerd/containerd/v2/plugins"
	"github.com/containerd/plugin"
	"github.com/containerd/plugin/registry"
)

func main() {
	if filepath.Base(os.Args[0]) == "containerd-shim-runc-v2" {
		runShim()

		return
	}

	registry.Register(&plugin.Registration{
		Type:   plugins.ImageVerifierPlugin,
		ID:     "machine",
		Config: &imageverifier.MachineConfig{},
		InitFn: newVerifier,
	})

	if err := command.App().Run(os.Args); err != nil {
		fmt.Fprintf(os.Stderr, "containerd: %v\n", err)
		os.Exit(1)
	}
}

// newVerifier has images judged by the rules of the machine, where the configuration names its socket.
func newVerifier(ctx *plugin.InitContext) (any, error) {
	socket := ctx.Config.(*imageverifier.MachineConfig).Socket
	if socket == "" {
		return nil, fmt.Errorf("no socket of the machine API is configured: %w", plugin.ErrSkipPlugin)
	}

	return imageverifier.UseMachine(socket)
}

// runShim runs with the one plugin that is a shim's, and without containerd's own.
func runShim() {
	registry.Reset()
	registry.Register(&plugin.Registration{
		Type:     plugins.TTRPCPlugin,
		ID:       "task",
		Requires: []plugin.Type{plugins.EventPlugin, plugins.InternalPlugin},
		InitFn:   newTasks,
	})
	shim.Run(context.Background(), manager.NewShimManager("io.containerd.runc.v2"))
}

func newTasks(ctx *plugin.InitContext) (any, error) {
	publisher, err := ctx.GetByID(plugins.EventPlugin, "publisher")
	if err != nil {
		return nil, err
	}

	ending, err := ctx.GetByID(plugins.InternalPlugin, "shutdown")
	if err != nil {
		return nil, err
	}

	return task.NewTaskService(ctx.Context, publisher.(shim.Publisher), ending.(shutdown.Service))
}
