package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anishathalye/porcupine"
	clientv3 "go.etcd.io/etcd/client/v3"
	recording "go.etcd.io/etcd/tests/v3/robustness/client"
	"go.etcd.io/etcd/tests/v3/robustness/identity"
	"go.etcd.io/etcd/tests/v3/robustness/model"
)

// session holds everything that is recorded.
type session struct {
	tls       *tls.Config
	base      time.Time
	ids       identity.Provider
	recorders []*recorder
	watches   []*watcher
}

func (s *session) client(endpoints ...string) (*recorder, error) {
	client, err := newClient(s.tls, endpoints)
	if err != nil {
		return nil, err
	}
	recorder := &recorder{client: client, history: model.NewAppendableHistory(s.ids), ids: s.ids, base: s.base}
	s.recorders = append(s.recorders, recorder)
	return recorder, nil
}

func (s *session) close() {
	for _, recorder := range s.recorders {
		_ = recorder.client.Close()
	}
	for _, watcher := range s.watches {
		if watcher.client != nil {
			_ = watcher.client.Close()
		}
	}
}

// watcher records all events that one member sends.
type watcher struct {
	client     *clientv3.Client
	base       time.Time
	mutex      sync.Mutex
	operations []model.WatchOperation
	revision   atomic.Int64
}

type watchers []*watcher

// watch watches through each member, until the returned function is called.
func (s *session) watch(members []string) (watchers, func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	for _, member := range members {
		client, err := newClient(s.tls, []string{member})
		watcher := &watcher{client: client, base: s.base}
		s.watches = append(s.watches, watcher)
		if err != nil {
			continue
		}
		running.Add(1)
		go func() {
			defer running.Done()
			for ctx.Err() == nil {
				watcher.once(ctx)
				time.Sleep(100 * time.Millisecond)
			}
		}()
	}
	return s.watches, func() {
		cancel()
		running.Wait()
	}
}

// once watches from the last revision that was received, until the watch ends.
func (w *watcher) once(ctx context.Context) {
	request := model.WatchRequest{
		Key: prefix, Revision: w.revision.Load() + 1, WithPrefix: true, WithProgressNotify: true, WithPrevKV: true,
	}
	w.mutex.Lock()
	w.operations = append(w.operations, model.WatchOperation{Request: request, Responses: []model.WatchResponse{}})
	index := len(w.operations) - 1
	w.mutex.Unlock()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	options := []clientv3.OpOption{clientv3.WithPrefix(), clientv3.WithRev(request.Revision), clientv3.WithProgressNotify(), clientv3.WithPrevKV()}
	for response := range w.client.Watch(ctx, prefix, options...) {
		w.mutex.Lock()
		w.operations[index].Responses = append(w.operations[index].Responses, recording.ToWatchResponse(response, w.base))
		w.mutex.Unlock()
		if count := len(response.Events); count > 0 {
			w.revision.Store(response.Events[count-1].Kv.ModRevision)
		}
	}
}

// reach waits until every watch has received this revision.
func (all watchers) reach(revision int64, limit time.Duration) error {
	deadline := time.Now().Add(limit)
	for _, watcher := range all {
		for watcher.revision.Load() < revision {
			if time.Now().After(deadline) {
				return fmt.Errorf("%w: %d of %d", errLate, watcher.revision.Load(), revision)
			}
			time.Sleep(100 * time.Millisecond)
		}
	}
	return nil
}

// histories reads all events from each member again, at the end: what the members have stored.
func (s *session) histories(members []string, until int64) ([][]model.WatchEvent, error) {
	all := [][]model.WatchEvent{}
	for _, member := range members {
		client, err := newClient(s.tls, []string{member})
		if err != nil {
			return nil, err
		}
		events, err := historyOf(client, until, s.base)
		_ = client.Close()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", member, err)
		}
		all = append(all, events)
	}
	return all, nil
}

func historyOf(client *clientv3.Client, until int64, base time.Time) ([]model.WatchEvent, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	events := []model.WatchEvent{}
	for response := range client.Watch(ctx, prefix, clientv3.WithPrefix(), clientv3.WithRev(1)) {
		if err := response.Err(); err != nil {
			return nil, err
		}
		for _, each := range recording.ToWatchResponse(response, base).Events {
			events = append(events, each)
			if each.Revision >= until {
				return events, nil
			}
		}
	}
	return nil, errLate
}

// save writes the record: what clients and watchers saw, and what each member has stored.
func (s *session) save(folder string, histories [][]model.WatchEvent) error {
	number := 0
	create := func() (string, error) {
		number++
		path := filepath.Join(folder, fmt.Sprintf("client-%d", number))
		return path, os.MkdirAll(path, 0o700)
	}
	for _, recorder := range s.recorders {
		path, err := create()
		if err != nil {
			return err
		}
		if err := write(filepath.Join(path, "operations.json"), recorder.history.Operations()); err != nil {
			return err
		}
	}
	for _, watcher := range s.watches {
		path, err := create()
		if err != nil {
			return err
		}
		if err := write(filepath.Join(path, "watch.json"), watcher.operations); err != nil {
			return err
		}
	}
	for i, history := range histories {
		if err := write(filepath.Join(folder, fmt.Sprintf("stored-%d.json", i)), history); err != nil {
			return err
		}
	}
	return nil
}

// write writes values one after another, as the checker's own package reads them.
func write[T porcupine.Operation | model.WatchOperation | model.WatchEvent](path string, values []T) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	encoder := json.NewEncoder(file)
	for _, value := range values {
		if err := encoder.Encode(value); err != nil {
			_ = file.Close()
			return err
		}
	}
	return file.Close()
}
