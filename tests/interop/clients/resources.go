package main

import (
	"context"
	"slices"

	"github.com/cosi-project/runtime/pkg/controller/generic"
	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/safe"
	"github.com/cosi-project/runtime/pkg/state"

	"github.com/siderolabs/talos/pkg/machinery/client"
)

// ids are the ids of the resources of a kind.
func ids[T generic.ResourceWithRD](ctx context.Context, c *client.Client) ([]string, error) {
	found, err := safe.StateListAll[T](ctx, c.COSI)
	if err != nil {
		return nil, err
	}

	list := []string{}
	for each := range found.All() {
		list = append(list, each.Metadata().ID())
	}

	slices.Sort(list)

	return list, nil
}

// bootstrapped are the ids that a watch of a kind gets before its first change; each must be of the kind's own type.
func bootstrapped[T generic.ResourceWithRD](ctx context.Context, c *client.Client) ([]string, error) {
	var zero T

	definition := zero.ResourceDefinition()
	kind := resource.NewMetadata(definition.DefaultNamespace, definition.Type, "", resource.VersionUndefined)
	events := make(chan safe.WrappedStateEvent[T])

	if err := safe.StateWatchKind(ctx, c.COSI, kind, events, state.WithBootstrapContents(true)); err != nil {
		return nil, err
	}

	list := []string{}

	for {
		select {
		case event := <-events:
			switch event.Type() { //nolint:exhaustive
			case state.Errored:
				return nil, event.Error()
			case state.Bootstrapped:
				slices.Sort(list)

				return list, nil
			case state.Created, state.Updated:
				each, err := event.Resource()
				if err != nil {
					return nil, err
				}

				list = append(list, each.Metadata().ID())
			}
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
