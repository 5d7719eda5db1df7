package main

import (
	"os"
	"testing"

	"github.com/stretchr/testify/suite"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/cosi-project/runtime/api/v1alpha1"
	"github.com/cosi-project/runtime/pkg/resource/protobuf"
	"github.com/cosi-project/runtime/pkg/state"
	"github.com/cosi-project/runtime/pkg/state/conformance"
	"github.com/cosi-project/runtime/pkg/state/protobuf/client"
)

// TestConformance runs the field's own suite against the state behind a unix socket.
func TestConformance(t *testing.T) {
	socket := os.Getenv("STATE_SOCKET")
	if socket == "" {
		t.Skip("STATE_SOCKET names no socket")
	}

	if err := protobuf.RegisterResource(conformance.PathResourceType, &conformance.PathResource{}); err != nil {
		t.Fatal(err)
	}

	conn, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}

	defer conn.Close() //nolint:errcheck

	suite.Run(t, &conformance.StateSuite{
		State:      state.WrapCore(client.NewAdapter(v1alpha1.NewStateClient(conn))),
		Namespaces: []string{"default", "controller", "system", "runtime"},
	})
}
