package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/state"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/client"
	"github.com/siderolabs/talos/pkg/machinery/resources/runtime"
)

// reboot restarts the node as Terraform's provider and upgrade operators do: by actor id, until the boot id is another one.
func reboot(r *run) error {
	before := ""
	actor := ""

	r.step("boot-id", r.one(), 10*time.Second, func(ctx context.Context) (_ any, err error) {
		before, err = readFile(ctx, r.c, bootIDFile)

		return before, err
	})

	// The events are followed before the request, because the machine may stop to answer soon after it.
	events := make(chan client.EventResult, 1000)
	if err := r.c.EventsWatchV2(r.one(), events); err != nil {
		return err
	}

	r.step("reboot", r.one(), 20*time.Second, func(ctx context.Context) (any, error) {
		reply, err := r.c.RebootWithResponse(ctx, client.WithRebootMode(machine.RebootRequest_DEFAULT))
		if err != nil {
			return nil, err
		}

		actor = reply.GetMessages()[0].GetActorId()

		return actor, nil
	})
	r.step("events-of-actor", r.one(), 20*time.Second, func(ctx context.Context) (any, error) { return ofActor(ctx, r.c, actor) })
	r.step("events-of-other-actor", r.one(), 2*time.Second, func(ctx context.Context) (any, error) {
		return ofActor(ctx, r.c, "00000000-0000-4000-8000-000000000000")
	})
	r.step("events-until-end", r.one(), 2*time.Minute, func(ctx context.Context) (any, error) { return untilEnd(ctx, events, actor) })
	r.step("boot-id-changed", r.one(), 3*time.Minute, func(ctx context.Context) (any, error) {
		return anotherBootID(ctx, r.c, before)
	})
	r.step("running", r.one(), 3*time.Minute, func(ctx context.Context) (any, error) { return running(ctx, r.c) })

	return nil
}

// named is an event of a sequence in one word, and nothing for others.
func named(event client.Event) string {
	switch payload := event.Payload.(type) {
	case *machine.SequenceEvent:
		return fmt.Sprintf("%s %s", payload.GetSequence(), payload.GetAction())
	case *machine.PhaseEvent:
		return fmt.Sprintf("phase %s", payload.GetAction())
	}

	return ""
}

// ofActor returns the first event of a sequence that has this actor, out of all that the machine remembers.
func ofActor(ctx context.Context, c *client.Client, actor string) (any, error) {
	events := make(chan client.EventResult)
	if err := c.EventsWatchV2(ctx, events, client.WithActorID(actor), client.WithTailEvents(-1)); err != nil {
		return nil, err
	}

	for {
		select {
		case result := <-events:
			if result.Error != nil {
				return nil, result.Error
			}

			if result.Event.ActorID != actor {
				return nil, fmt.Errorf("event of actor %q", result.Event.ActorID)
			}

			if name := named(result.Event); name != "" {
				return name, nil
			}
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// untilEnd returns the names of the events of an actor until the machine ends the stream.
func untilEnd(ctx context.Context, events <-chan client.EventResult, actor string) (any, error) {
	seen := map[string]int{}

	for {
		select {
		case result := <-events:
			if result.Error != nil {
				return map[string]any{"events": seen, "ended": result.Error.Error()}, nil
			}

			if result.Event.ActorID == actor {
				seen[named(result.Event)]++
			}
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// anotherBootID reads the boot id each second until it is not that of before; errors mean that the machine is still down.
func anotherBootID(ctx context.Context, c *client.Client, before string) (any, error) {
	var last error

	for {
		now, err := func() (string, error) {
			attempt, cancel := context.WithTimeout(ctx, 5*time.Second)
			defer cancel()

			return readFile(attempt, c, bootIDFile)
		}()
		if err == nil && now != before {
			return now, nil
		}

		last = err

		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return nil, errors.Join(ctx.Err(), last)
		}
	}
}

// running watches the status of the machine until it is running and ready.
func running(ctx context.Context, c *client.Client) (any, error) {
	var last error

	for ctx.Err() == nil {
		stage, err := untilReady(ctx, c)
		if err == nil {
			return stage, nil
		}

		last = err

		time.Sleep(time.Second)
	}

	return nil, errors.Join(ctx.Err(), last)
}

func untilReady(ctx context.Context, c *client.Client) (string, error) {
	events := make(chan state.Event)
	kind := resource.NewMetadata(runtime.NamespaceName, runtime.MachineStatusType, runtime.MachineStatusID, resource.VersionUndefined)

	if err := c.COSI.Watch(ctx, kind, events); err != nil {
		return "", err
	}

	for {
		select {
		case event := <-events:
			if event.Type == state.Errored {
				return "", event.Error
			}

			status, ok := event.Resource.(*runtime.MachineStatus)
			if ok && status.TypedSpec().Stage == runtime.MachineStageRunning && status.TypedSpec().Status.Ready {
				return status.TypedSpec().Stage.String(), nil
			}
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
}
