// The OpenTelemetry collector's own receiver of OTLP: prints what it gets over gRPC and HTTP, a line each, as its JSON form.
package main

import (
	"context"
	"fmt"
	"os"
	"sync"

	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
	"go.opentelemetry.io/collector/receiver/receivertest"
)

var mutex sync.Mutex

func show(signal string, text []byte, err error) error {
	if err != nil {
		return err
	}
	mutex.Lock()
	defer mutex.Unlock()
	_, err = fmt.Printf("%s %s\n", signal, text)
	return err
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func main() {
	ctx := context.Background()
	factory := otlpreceiver.NewFactory()
	config := factory.CreateDefaultConfig()
	check(confmap.NewFromStringMap(map[string]any{
		"protocols": map[string]any{
			"grpc": map[string]any{"endpoint": os.Args[1]},
			"http": map[string]any{"endpoint": os.Args[2]},
		},
	}).Unmarshal(config))
	settings := receivertest.NewNopSettings(factory.Type())
	spans, err := consumer.NewTraces(func(_ context.Context, traces ptrace.Traces) error {
		text, err := (&ptrace.JSONMarshaler{}).MarshalTraces(traces)
		return show("traces", text, err)
	})
	check(err)
	points, err := consumer.NewMetrics(func(_ context.Context, metrics pmetric.Metrics) error {
		text, err := (&pmetric.JSONMarshaler{}).MarshalMetrics(metrics)
		return show("metrics", text, err)
	})
	check(err)
	records, err := consumer.NewLogs(func(_ context.Context, logs plog.Logs) error {
		text, err := (&plog.JSONMarshaler{}).MarshalLogs(logs)
		return show("logs", text, err)
	})
	check(err)
	logs, err := factory.CreateLogs(ctx, settings, config, records)
	check(err)
	traces, err := factory.CreateTraces(ctx, settings, config, spans)
	check(err)
	metrics, err := factory.CreateMetrics(ctx, settings, config, points)
	check(err)
	// All are one server, which serves what was created before it starts.
	check(logs.Start(ctx, componenttest.NewNopHost()))
	check(traces.Start(ctx, componenttest.NewNopHost()))
	check(metrics.Start(ctx, componenttest.NewNopHost()))
	fmt.Println("ready")
	select {}
}
