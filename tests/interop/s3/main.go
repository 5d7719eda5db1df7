// S3 serves buckets in memory over TLS, by an implementation that verifies signatures: the judge of our client.
//
//	s3 ADDRESS CERTIFICATE KEY ACCESS-KEY-ID SECRET-ACCESS-KEY
package main

import (
	"log"
	"net/http"
	"os"

	"github.com/rclone/gofakes3"
	"github.com/rclone/gofakes3/s3mem"
)

func main() {
	if len(os.Args) != 6 {
		log.Fatal("usage: s3 ADDRESS CERTIFICATE KEY ACCESS-KEY-ID SECRET-ACCESS-KEY")
	}

	server := gofakes3.New(s3mem.New(), gofakes3.WithAutoBucket(true), gofakes3.WithV4Auth(map[string]string{os.Args[4]: os.Args[5]}))

	log.Fatal(http.ListenAndServeTLS(os.Args[1], os.Args[2], os.Args[3], server.Server()))
}
