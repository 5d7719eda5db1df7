package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/client"
	"github.com/siderolabs/talos/pkg/machinery/constants"
)

// capiLimit is what the control plane provider of the Cluster API gives each group of calls.
const capiLimit = 5 * time.Second

// capi makes the calls of the control plane provider of the Cluster API.
func capi(r *run) error {
	r.step("list-member", r.all(), capiLimit, func(ctx context.Context) (any, error) {
		return listed(ctx, r.c, constants.EtcdDataPath+"/member")
	})
	r.step("bootstrap", r.one(), capiLimit, func(ctx context.Context) (any, error) {
		return nil, r.c.Bootstrap(ctx, &machine.BootstrapRequest{})
	})
	r.step("service-etcd", r.one(), capiLimit, func(ctx context.Context) (any, error) { return service(ctx, r.c, "etcd") })
	r.step("service-kubelet", r.all(), capiLimit, func(ctx context.Context) (any, error) { return service(ctx, r.c, "kubelet") })
	r.step("services", r.all(), capiLimit, func(ctx context.Context) (any, error) { return unhealthy(ctx, r.c) })
	r.step("members", r.one(), capiLimit, func(ctx context.Context) (any, error) { return members(ctx, r.c) })
	r.step("forfeit", r.one(), capiLimit, func(ctx context.Context) (any, error) {
		reply, err := r.c.EtcdForfeitLeadership(ctx, &machine.EtcdForfeitLeadershipRequest{})

		return reply.GetMessages(), err
	})
	r.step("remove-unknown", r.one(), capiLimit, func(ctx context.Context) (any, error) {
		return nil, r.c.EtcdRemoveMemberByID(ctx, &machine.EtcdRemoveMemberByIDRequest{MemberId: 1})
	})

	for _, each := range strings.Split(*nodes, ",") {
		r.step("boot-events-"+each, client.WithNode(r.ctx, each), capiLimit, func(ctx context.Context) (any, error) {
			return booted(ctx, r.c)
		})
	}

	return nil
}

// listed is what each node has at a path: the names, or the error of the metadata or of the entry.
func listed(ctx context.Context, c *client.Client, path string) (any, error) {
	stream, err := c.LS(ctx, &machine.ListRequest{Root: path})
	if err != nil {
		return nil, err
	}

	found := map[string][]string{}

	for {
		entry, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return found, nil
		}

		if err != nil {
			return nil, err
		}

		// The provider reads the field without a check for nil.
		name, text := entry.Metadata.GetHostname(), entry.GetRelativeName()
		if entry.Metadata.Error != "" { //nolint:protogetter
			text = "metadata: " + entry.Metadata.Error //nolint:protogetter
		} else if entry.GetError() != "" {
			text = "entry: " + entry.GetError()
		}

		found[name] = append(found[name], text)
	}
}

// service is the state of a service on each node: the last event decides, as it does for the provider.
func service(ctx context.Context, c *client.Client, id string) (any, error) {
	services, err := c.ServiceInfo(ctx, id)
	if err != nil {
		return nil, err
	}

	states := map[string]string{}

	for _, each := range services {
		host := each.Metadata.GetHostname()
		events := each.Service.GetEvents().GetEvents()

		if len(events) == 0 {
			states[host] = "no events"

			continue
		}

		states[host] = fmt.Sprintf("%s %s healthy=%t", each.Service.GetState(), events[len(events)-1].GetState(), each.Service.GetHealth().GetHealthy())
	}

	return states, nil
}

// unhealthy are the services whose health is known and bad: with one of them the provider calls the node unhealthy.
func unhealthy(ctx context.Context, c *client.Client) (any, error) {
	reply, err := c.ServiceList(ctx)
	if err != nil {
		return nil, err
	}

	counted := map[string]int{}
	bad := []string{}

	for _, message := range reply.GetMessages() {
		host := message.GetMetadata().GetHostname()
		counted[host] = len(message.GetServices())

		for _, each := range message.GetServices() {
			if !each.GetHealth().GetUnknown() && !each.GetHealth().GetHealthy() {
				bad = append(bad, host+" "+each.GetId())
			}
		}
	}

	return map[string]any{"services": counted, "unhealthy": bad}, nil
}

func members(ctx context.Context, c *client.Client) (any, error) {
	reply, err := c.EtcdMemberList(ctx, &machine.EtcdMemberListRequest{})
	if err != nil {
		return nil, err
	}

	names := map[string][]string{}

	for _, message := range reply.GetMessages() {
		for _, member := range message.GetMembers() {
			host := message.GetMetadata().GetHostname()
			names[host] = append(names[host], member.GetHostname())
		}
	}

	return names, nil
}

// booted reads all remembered events for as long as the provider does, which watches each machine by itself, and returns those of
// the boot sequence.
func booted(ctx context.Context, c *client.Client) (any, error) {
	watched, cancel := context.WithTimeout(ctx, capiLimit-2*time.Second)
	defer cancel()

	events := make(chan client.EventResult)
	if err := c.EventsWatchV2(watched, events, client.WithTailEvents(-1)); err != nil {
		return nil, err
	}

	boots := []string{}

	for {
		select {
		case result := <-events:
			// The machine may see the end of the limit first.
			if watched.Err() != nil || client.StatusCode(result.Error) == codes.DeadlineExceeded {
				return boots, nil
			}

			if result.Error != nil {
				return nil, result.Error
			}

			if payload, ok := result.Event.Payload.(*machine.SequenceEvent); ok && payload.GetSequence() == "boot" {
				boots = append(boots, payload.GetAction().String())
			}
		case <-watched.Done():
			return boots, nil
		}
	}
}
