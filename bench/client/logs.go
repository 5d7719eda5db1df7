package main

import (
	"context"
	"fmt"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/api/common"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/client"
)

// followLogs has many clients, each with a separate connection, follow a log; then changes are requested that the node
// rejects and logs, and each client is timed until it has the line.
func followLogs(ctx context.Context, name string) {
	type arrival struct {
		client int
		at     time.Time
	}
	begun := make(chan arrival, *n)
	lines := make(chan arrival, *n*100)
	t0 := time.Now()
	clients := make([]*client.Client, *n)
	for i := range clients {
		clients[i] = newClient(ctx)
		go func() {
			stream, err := clients[i].Logs(nctx(ctx), "system", common.ContainerDriver_CONTAINERD, *service, true, 1)
			die(err)
			for first := true; ; first = false {
				_, err := stream.Recv()
				die(err)
				if first {
					begun <- arrival{i, time.Now()}
				} else {
					lines <- arrival{i, time.Now()}
				}
			}
		}()
	}
	change := func() {
		// Rejected in a container node; the request is logged anyway.
		_, _ = clients[0].MachineClient.MetaWrite(nctx(ctx), &machine.MetaWriteRequest{Key: 0xff, Value: []byte("bench")})
	}
	change()
	lat := []time.Duration{}
	for range *n {
		lat = append(lat, (<-begun).at.Sub(t0))
	}
	report(fmt.Sprintf("%s service=%s begun", name, *service), lat, time.Since(t0), 0)
	for r := range *rounds {
		time.Sleep(300 * time.Millisecond)
		for len(lines) > 0 {
			<-lines
		}
		t0 := time.Now()
		change()
		seen := map[int]time.Duration{}
		late := time.After(10 * time.Second)
		for len(seen) < *n {
			select {
			case a := <-lines:
				if _, ok := seen[a.client]; !ok {
					seen[a.client] = a.at.Sub(t0)
				}
			case <-late:
				die(fmt.Errorf("only %d of %d clients have got the line", len(seen), *n))
			}
		}
		l := []time.Duration{}
		for _, d := range seen {
			l = append(l, d)
		}
		report(fmt.Sprintf("%s service=%s round=%d", name, *service, r), l, time.Since(t0), 0)
	}
}
