package main

import (
	"os"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/etcdutl/v3/etcdutl"
)

// runEtcdutl is etcdutl: etcd's own program has no package to call, so its commands are gathered here.
func runEtcdutl() {
	root := &cobra.Command{Use: "etcdutl", Short: "Works on etcd's files while etcd is not running.", SilenceUsage: true}
	root.PersistentFlags().StringVarP(&etcdutl.OutputFormat, "write-out", "w", "simple", "how results are written: fields, json, protobuf, simple or table")
	root.AddCommand(
		etcdutl.NewDefragCommand(),
		etcdutl.NewHashKVCommand(),
		etcdutl.NewMigrateCommand(),
		etcdutl.NewSnapshotCommand(),
		etcdutl.NewVersionCommand(),
	)

	if err := root.Execute(); err != nil {
		os.Exit(1)
	}
}
