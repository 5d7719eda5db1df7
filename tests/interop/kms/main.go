// A client of a KMS, made of the field's own module. Reads data in base64, and prints the answer in base64.
//
//	kms-client seal|unseal ADDRESS NODE-UUID [CA-FILE]
package main

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"log"
	"os"
	"strings"
	"time"

	"github.com/siderolabs/kms-client/api/kms"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
)

func main() {
	transport := insecure.NewCredentials()

	if len(os.Args) > 4 {
		var err error
		if transport, err = credentials.NewClientTLSFromFile(os.Args[4], ""); err != nil {
			log.Fatal(err)
		}
	}

	connection, err := grpc.NewClient(os.Args[2], grpc.WithTransportCredentials(transport))
	if err != nil {
		log.Fatal(err)
	}

	input, err := io.ReadAll(os.Stdin)
	if err != nil {
		log.Fatal(err)
	}

	data, err := base64.StdEncoding.DecodeString(strings.TrimSpace(string(input)))
	if err != nil {
		log.Fatal(err)
	}

	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()

	client, request := kms.NewKMSServiceClient(connection), &kms.Request{NodeUuid: os.Args[3], Data: data}
	call := client.Seal

	if os.Args[1] == "unseal" {
		call = client.Unseal
	}

	response, err := call(ctx, request)
	if err != nil {
		log.Fatal(err)
	}

	fmt.Println(base64.StdEncoding.EncodeToString(response.Data))
}
