// Part of containerd's package of image verifiers: the build copies this file there, since the image service for pods can
// import that package and not this module.

package imageverifier

import (
	"context"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/containerd/containerd/v2/core/remotes"
	"github.com/containerd/containerd/v2/core/remotes/docker"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
)

const (
	verifyMethod = "/machine.ImageService/Verify"
	verifierRole = "os:image:verifier"
	// The machine ends a check after 60 seconds; its own words arrive before this deadline.
	verifyTimeout = 70 * time.Second
	// The machine allows 16 checks of containerd at a time, and there are two daemons.
	mostChecks = 8
)

// MachineConfig is the configuration of the plugin. Without a socket it is absent.
type MachineConfig struct {
	Socket string `toml:"socket"`
}

// Machine has each image judged by the rules of the machine, before its content is fetched.
type Machine struct {
	connection *grpc.ClientConn
	places     chan struct{}
}

// machine is what pulls for pods go through; nil where the configuration names no socket.
var machine *Machine

// UseMachine makes every pull depend on the answer of the machine API on a Unix socket.
func UseMachine(socket string) (*Machine, error) {
	// Without a dialer of its own the library sends a request through the proxy of the environment.
	dial := func(ctx context.Context, path string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", path)
	}

	connection, err := grpc.NewClient("passthrough:///"+socket,
		grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithAuthority("localhost"), grpc.WithContextDialer(dial))
	if err != nil {
		return nil, fmt.Errorf("client of the machine API: %w", err)
	}

	machine = &Machine{connection: connection, places: make(chan struct{}, mostChecks)}

	return machine, nil
}

// VerifyImage denies an image unless the machine allows it; no answer is a denial, too.
func (m *Machine) VerifyImage(ctx context.Context, name string, desc ocispec.Descriptor) (*Judgement, error) {
	select {
	case m.places <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}

	defer func() { <-m.places }()

	ctx, cancel := context.WithTimeout(ctx, verifyTimeout)
	defer cancel()

	repository, _, _ := strings.Cut(name, "@")
	request := protowire.AppendTag(nil, 1, protowire.BytesType)
	request = protowire.AppendString(request, repository+"@"+desc.Digest.String())
	request = appendCredentials(ctx, request, repository)

	var response []byte

	ctx = metadata.AppendToOutgoingContext(ctx, "talos-role", verifierRole)
	if err := m.connection.Invoke(ctx, verifyMethod, &request, &response, grpc.WaitForReady(true), grpc.ForceCodec(rawCodec{})); err != nil {
		answer := status.Convert(err)
		if answer.Code() == codes.PermissionDenied {
			return &Judgement{Reason: answer.Message()}, nil
		}

		return &Judgement{Reason: fmt.Sprintf("the image could not be verified: %s (%s)", answer.Message(), answer.Code())}, nil
	}

	return &Judgement{OK: true}, nil
}

type credentialsKey struct{}

// WithCredentials keeps the credentials of a pull, so that the image's signature is fetched with them as well.
func WithCredentials(ctx context.Context, credentials func(host string) (string, string, error)) context.Context {
	return context.WithValue(ctx, credentialsKey{}, credentials)
}

func appendCredentials(ctx context.Context, request []byte, repository string) []byte {
	credentials, ok := ctx.Value(credentialsKey{}).(func(string) (string, string, error))
	if !ok {
		return request
	}

	domain, _, _ := strings.Cut(repository, "/")

	host, err := docker.DefaultHost(domain)
	if err != nil {
		return request
	}

	// What does not parse fails the pull itself, with its own message.
	username, password, err := credentials(host)
	if err != nil || (username == "" && password == "") {
		return request
	}

	var message []byte
	for i, text := range []string{host, username, password} {
		message = protowire.AppendTag(message, protowire.Number(i+1), protowire.BytesType)
		message = protowire.AppendString(message, text)
	}

	request = protowire.AppendTag(request, 2, protowire.BytesType)

	return protowire.AppendBytes(request, message)
}

// rawCodec passes encoded messages through.
type rawCodec struct{}

func (rawCodec) Name() string { return "proto" }

func (rawCodec) Marshal(value any) ([]byte, error) { return *value.(*[]byte), nil }

func (rawCodec) Unmarshal(data []byte, value any) error {
	*value.(*[]byte) = append([]byte(nil), data...)

	return nil
}

// VerifyResolved makes a resolver fail for images that the machine denies.
func VerifyResolved(resolver remotes.Resolver) remotes.Resolver {
	if machine == nil {
		return resolver
	}

	return verifyingResolver{resolver}
}

type verifyingResolver struct{ remotes.Resolver }

func (r verifyingResolver) Resolve(ctx context.Context, ref string) (string, ocispec.Descriptor, error) {
	name, desc, err := r.Resolver.Resolve(ctx, ref)
	if err != nil {
		return name, desc, err
	}

	judgement, err := machine.VerifyImage(ctx, name, desc)
	if err != nil {
		return "", ocispec.Descriptor{}, err
	}

	if !judgement.OK {
		return "", ocispec.Descriptor{}, fmt.Errorf("image verifier machine blocked pull of %s with digest %s for reason: %s", name, desc.Digest, judgement.Reason)
	}

	return name, desc, nil
}
