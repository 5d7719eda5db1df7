package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/config/encoder"
	"github.com/siderolabs/talos/pkg/machinery/config/generate"
	"github.com/siderolabs/talos/pkg/machinery/config/machine"
)

// writeConfigs writes what the field's own generator makes for both kinds of machine, with comments and without.
func writeConfigs(folder, kubernetes string) (any, error) {
	contract, err := config.ParseContractFromVersion("v1.13")
	if err != nil {
		return nil, err
	}

	input, err := generate.NewInput("field", "https://10.0.0.1:6443", kubernetes,
		generate.WithVersionContract(contract), generate.WithInstallDisk("/dev/sda"))
	if err != nil {
		return nil, err
	}

	files := []string{}

	for name, kind := range map[string]machine.Type{"controlplane": machine.TypeControlPlane, "worker": machine.TypeWorker} {
		made, err := input.Config(kind)
		if err != nil {
			return nil, err
		}

		for suffix, comments := range map[string]encoder.CommentsFlags{"plain": encoder.CommentsDisabled, "explained": encoder.CommentsAll} {
			data, err := made.EncodeBytes(encoder.WithComments(comments))
			if err != nil {
				return nil, err
			}

			file := filepath.Join(folder, fmt.Sprintf("%s-%s.yaml", name, suffix))
			if err := os.WriteFile(file, data, 0o600); err != nil {
				return nil, err
			}

			files = append(files, file)
		}
	}

	return files, nil
}
