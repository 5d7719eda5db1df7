package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"

	"go.etcd.io/etcd/etcdutl/v3/snapshot"
	"go.etcd.io/etcd/server/v3/lease"
	"go.etcd.io/etcd/server/v3/storage/backend"
	"go.etcd.io/etcd/server/v3/storage/mvcc"
	"go.uber.org/zap"
)

// etcdutl is what a node needs of the command of this name: a snapshot becomes a data folder, and what is in one is
// printed as JSON, with the names that etcdutl prints with `-w json`.
func etcdutl() {
	if err := runEtcdutl(os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "etcdutl: %v\n", err)
		os.Exit(1)
	}
}

func runEtcdutl(arguments []string) error {
	switch {
	case len(arguments) > 2 && arguments[0] == "snapshot" && arguments[1] == "restore":
		return restoreSnapshot(arguments[2], arguments[3:])
	case len(arguments) == 3 && arguments[0] == "snapshot" && arguments[1] == "status":
		status, err := snapshot.NewV3(zap.NewNop()).Status(arguments[2])
		if err != nil {
			return err
		}

		return json.NewEncoder(os.Stdout).Encode(status)
	case len(arguments) == 2 && arguments[0] == "hashkv":
		return printHash(arguments[1])
	default:
		return fmt.Errorf("known here: `snapshot restore FILE` with its flags, `snapshot status FILE`, `hashkv FILE`")
	}
}

// restoreSnapshot makes a data folder of a snapshot: a cluster that has lost its majority begins again from it.
func restoreSnapshot(path string, arguments []string) error {
	config := snapshot.RestoreConfig{SnapshotPath: path, InitialClusterToken: "etcd-cluster"}

	var peers string

	flags := flag.NewFlagSet("etcdutl", flag.ContinueOnError)
	flags.StringVar(&config.Name, "name", "", "name of this member")
	flags.StringVar(&config.InitialCluster, "initial-cluster", "", "the members the cluster begins with")
	flags.StringVar(&peers, "initial-advertise-peer-urls", "", "addresses of this member for the others")
	flags.StringVar(&config.OutputDataDir, "data-dir", "", "folder to make")
	flags.BoolVar(&config.SkipHashCheck, "skip-hash-check", false, "take a copied database, which has no checksum at its end")

	if err := flags.Parse(arguments); err != nil {
		return err
	}

	config.PeerURLs = strings.Split(peers, ",")

	return snapshot.NewV3(zap.NewNop()).Restore(config)
}

// printHash prints the hash of all keys and revisions of a database, which a member computes in the same way (HashKV).
func printHash(path string) error {
	if _, err := os.Stat(path); err != nil {
		return err
	}

	config := backend.DefaultBackendConfig(zap.NewNop())
	config.Path = path
	database := backend.New(config)
	defer database.Close()

	// Keys may have leases. Nothing expires here, so nothing has to keep them.
	store := mvcc.NewStore(zap.NewNop(), database, &lease.FakeLessor{}, mvcc.StoreConfig{})
	defer store.Close()

	hash, _, err := mvcc.NewHashStorage(zap.NewNop(), store).HashByRev(0)
	if err != nil {
		return err
	}

	return json.NewEncoder(os.Stdout).Encode(map[string]int64{
		"hash":            int64(hash.Hash),
		"hashRevision":    hash.Revision,
		"compactRevision": hash.CompactRevision,
	})
}
