// Command robustness writes, reads and watches keys of an etcd cluster until its input ends, and records every call and every event
// in the format of etcd's own robustness tests. The test beside it judges the record.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"go.etcd.io/etcd/tests/v3/robustness/identity"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintf(os.Stderr, "robustness: %v\n", err)
		os.Exit(1)
	}
}

func run() error {
	endpoints := flag.String("endpoints", "", "addresses of all members, comma separated")
	folder := flag.String("out", "", "folder of the record")
	rate := flag.Float64("rate", 15, "calls per second of all clients together")
	perMember := flag.Int("clients", 2, "clients of each member")
	var files tlsFiles
	flag.StringVar(&files.ca, "cacert", "", "certificate of the authority")
	flag.StringVar(&files.cert, "cert", "", "certificate of the client")
	flag.StringVar(&files.key, "key", "", "key of the client")
	flag.Parse()

	members := strings.Split(*endpoints, ",")
	tls, err := files.config()
	if err != nil {
		return err
	}

	session := &session{tls: tls, base: time.Now(), ids: identity.NewIDProvider()}
	defer session.close()

	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	go func() {
		// The story closes the input when its last fault is over.
		_, _ = io.Copy(io.Discard, os.Stdin)
		stop()
	}()

	first, err := session.client(members...)
	if err != nil {
		return err
	}
	// The checker needs a first and a last write that succeeded.
	if err := first.mark("begin"); err != nil {
		return err
	}

	watchers, endWatches := session.watch(members)
	var traffic sync.WaitGroup
	count := len(members) * *perMember
	for i := range count {
		client, err := session.client(members[i%len(members)])
		if err != nil {
			return err
		}
		traffic.Add(1)
		go func() {
			defer traffic.Done()
			client.traffic(ctx, time.Duration(float64(count)/(*rate)*float64(time.Second)))
		}()
	}
	fmt.Println("running")
	traffic.Wait()

	if err := first.mark("end"); err != nil {
		return err
	}
	if err := watchers.reach(first.lastRevision, 2*time.Minute); err != nil {
		return err
	}
	endWatches()
	histories, err := session.histories(members, first.lastRevision)
	if err != nil {
		return err
	}
	return session.save(*folder, histories)
}
