// Receivers of logs and of events, made of the field's own modules. Prints what they decode, one JSON object per line.
//
//	receivers LOG-ADDRESS EVENT-ADDRESS
package main

import (
	"context"
	"encoding/json"
	"log"
	"net"
	"net/netip"
	"os"
	"sync"

	eventsapi "github.com/siderolabs/siderolink/api/events"
	"github.com/siderolabs/siderolink/pkg/events"
	"github.com/siderolabs/siderolink/pkg/logreceiver"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

var (
	mu  sync.Mutex
	out = json.NewEncoder(os.Stdout)
)

func printLine(value map[string]any) {
	mu.Lock()
	defer mu.Unlock()

	if err := out.Encode(value); err != nil {
		log.Fatal(err)
	}
}

type adapter struct{}

// HandleEvent implements events.Adapter.
func (adapter) HandleEvent(_ context.Context, event events.Event) error {
	payload, err := protojson.Marshal(event.Payload)
	if err != nil {
		return err
	}

	printLine(map[string]any{"event": event.TypeURL, "id": event.ID, "actor": event.ActorID, "payload": json.RawMessage(payload)})

	return nil
}

func listen(address string) net.Listener {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		log.Fatal(err)
	}

	return listener
}

func main() {
	logger, err := zap.NewProduction()
	if err != nil {
		log.Fatal(err)
	}

	logs := logreceiver.NewServer(logger, listen(os.Args[1]), func(_ netip.Addr, message map[string]any) {
		printLine(map[string]any{"log": message})
	})
	go func() { log.Fatal(logs.Serve()) }()

	server := grpc.NewServer()
	eventsapi.RegisterEventSinkServiceServer(server, events.NewSink(adapter{}, []proto.Message{
		&machine.SequenceEvent{}, &machine.PhaseEvent{}, &machine.TaskEvent{}, &machine.ServiceStateEvent{},
		&machine.ConfigLoadErrorEvent{}, &machine.AddressEvent{}, &machine.MachineStatusEvent{}, &machine.RestartEvent{},
	}))
	log.Fatal(server.Serve(listen(os.Args[2])))
}
