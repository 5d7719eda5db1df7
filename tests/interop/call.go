package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"strings"

	cosi "github.com/cosi-project/runtime/api/v1alpha1"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/siderolabs/talos/pkg/machinery/api/security"
	"github.com/siderolabs/talos/pkg/machinery/client"
)

// call makes one call with the field's own generated stubs: the path is "machine.MachineService/Hostname", the requests are
// JSON, of which methods that take one get the first. A stream's answers are read to its end, or until there are as many as requested.
func call(ctx context.Context, c *client.Client, conn *grpc.ClientConn, path string, requests []string, limit int) (any, error) {
	service, name, _ := strings.Cut(path, "/")

	stubs := map[string]any{
		"cluster.ClusterService":      c.ClusterClient,
		"inspect.InspectService":      c.InspectClient,
		"machine.DebugService":        c.DebugClient,
		"machine.ImageService":        c.ImageClient,
		"machine.LifecycleService":    c.LifecycleClient,
		"machine.MachineService":      c.MachineClient,
		"storage.StorageService":      c.StorageClient,
		"time.TimeService":            c.TimeClient,
		"cosi.resource.State":         cosi.NewStateClient(conn),
		"securityapi.SecurityService": security.NewSecurityServiceClient(conn),
	}

	stub, ok := stubs[service]
	if !ok {
		return nil, fmt.Errorf("no such service %q", service)
	}

	method := reflect.ValueOf(stub).MethodByName(name)
	if !method.IsValid() {
		return nil, fmt.Errorf("no such method %q", path)
	}

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()

	in := []reflect.Value{reflect.ValueOf(ctx)}

	// Methods of the stub with a request take (context, request, options...), the others open a stream to send on.
	oneRequest := method.Type().NumIn() == 3
	if oneRequest {
		request, err := parse(method.Type().In(1), requests[0])
		if err != nil {
			return nil, err
		}

		in = append(in, request)
	}

	out := method.Call(in)
	if err, _ := out[1].Interface().(error); err != nil { //nolint:errcheck
		return nil, err
	}

	if message, ok := out[0].Interface().(proto.Message); ok {
		return shownMessages([]proto.Message{message})
	}

	stream := out[0]

	if !oneRequest {
		send := stream.MethodByName("Send")

		for _, text := range requests {
			request, err := parse(send.Type().In(0), text)
			if err != nil {
				return nil, err
			}

			// A server that has sent its last message may end the stream; its status comes with the answer.
			if err, _ := send.Call([]reflect.Value{request})[0].Interface().(error); err != nil && !errors.Is(err, io.EOF) { //nolint:errcheck
				return nil, err
			}
		}

		if end := stream.MethodByName("CloseAndRecv"); end.IsValid() {
			last := end.Call(nil)
			if err, _ := last[1].Interface().(error); err != nil { //nolint:errcheck
				return nil, err
			}

			return shownMessages([]proto.Message{last[0].Interface().(proto.Message)}) //nolint:forcetypeassert
		}

		stream.MethodByName("CloseSend").Call(nil)
	}

	answers := []proto.Message{}

	for limit == 0 || len(answers) < limit {
		next := stream.MethodByName("Recv").Call(nil)
		if err, _ := next[1].Interface().(error); err != nil { //nolint:errcheck
			if errors.Is(err, io.EOF) {
				break
			}

			return nil, err
		}

		answers = append(answers, next[0].Interface().(proto.Message)) //nolint:forcetypeassert
	}

	return shownMessages(answers)
}

// parse reads a request; "@file" is one that is too long for a command line.
func parse(kind reflect.Type, text string) (reflect.Value, error) {
	if path, ok := strings.CutPrefix(text, "@"); ok {
		whole, err := os.ReadFile(path)
		if err != nil {
			return reflect.Value{}, err
		}

		text = string(whole)
	}

	request := reflect.New(kind.Elem())

	return request, protojson.Unmarshal([]byte(text), request.Interface().(proto.Message)) //nolint:forcetypeassert
}

func shownMessages(messages []proto.Message) (any, error) {
	shown := []json.RawMessage{}

	for _, message := range messages {
		text, err := protojson.Marshal(message)
		if err != nil {
			return nil, err
		}

		shown = append(shown, text)
	}

	return shown, nil
}
