package main

import (
	"flag"
	"fmt"
	"os"
	"strings"

	"go.etcd.io/etcd/etcdutl/v3/snapshot"
	"go.uber.org/zap"
)

// restoreSnapshot makes a data folder of a snapshot, as `etcdutl snapshot restore` does: a cluster that has lost its
// majority begins again from it. Nothing else of etcdutl is here.
func restoreSnapshot() {
	if err := restore(os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "etcdutl: %v\n", err)
		os.Exit(1)
	}
}

func restore(arguments []string) error {
	if len(arguments) < 3 || arguments[0] != "snapshot" || arguments[1] != "restore" {
		return fmt.Errorf("only `snapshot restore FILE` with its flags is known here")
	}

	config := snapshot.RestoreConfig{SnapshotPath: arguments[2], InitialClusterToken: "etcd-cluster"}

	var peers string

	flags := flag.NewFlagSet("etcdutl", flag.ContinueOnError)
	flags.StringVar(&config.Name, "name", "", "name of this member")
	flags.StringVar(&config.InitialCluster, "initial-cluster", "", "the members the cluster begins with")
	flags.StringVar(&peers, "initial-advertise-peer-urls", "", "addresses of this member for the others")
	flags.StringVar(&config.OutputDataDir, "data-dir", "", "folder to make")
	flags.BoolVar(&config.SkipHashCheck, "skip-hash-check", false, "take a copied database, which has no checksum at its end")

	if err := flags.Parse(arguments[3:]); err != nil {
		return err
	}

	config.PeerURLs = strings.Split(peers, ",")

	return snapshot.NewV3(zap.NewNop()).Restore(config)
}
