package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/google/go-cmp/cmp"
	"go.etcd.io/etcd/tests/v3/robustness/model"
	"go.etcd.io/etcd/tests/v3/robustness/report"
	"go.etcd.io/etcd/tests/v3/robustness/validate"
	"go.uber.org/zap"
)

// linearizationTimeout is for half an hour of calls.
const linearizationTimeout = 10 * time.Minute

// TestRecord judges the record in the folder RECORD with the checker of etcd's robustness tests, and writes figures beside it.
func TestRecord(t *testing.T) {
	folder := os.Getenv("RECORD")
	if folder == "" {
		t.Skip("RECORD names no folder")
	}
	reports, err := report.LoadClientReports(folder)
	if err != nil {
		t.Fatal(err)
	}
	stored := storedBySameMembers(t, folder)
	figures := figuresOf(t, reports, stored)
	if len(figures.Lost) > 0 {
		t.Errorf("%d acknowledged writes were lost: %v", len(figures.Lost), figures.Lost)
	}
	revisions := revisionsOf(stored)
	for i := range reports {
		revisions.apply(&reports[i])
	}
	persisted := persistedRequests(t, reports, stored)
	began := time.Now()
	visualize := validate.ValidateAndReturnVisualize(t, zap.NewNop(), validate.Config{}, reports, persisted, linearizationTimeout)
	figures.CheckSeconds = time.Since(began).Seconds()
	if t.Failed() && visualize != nil {
		if err := visualize(filepath.Join(folder, "history.html")); err != nil {
			t.Error(err)
		}
	}
	text, err := json.Marshal(figures)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "figures.json"), text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// storedBySameMembers returns what the members have stored, which has to be the same.
func storedBySameMembers(t *testing.T, folder string) []model.WatchEvent {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(folder, "stored-*.json"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no stored-*.json in %s: %v", folder, err)
	}
	var first []model.WatchEvent
	for i, path := range paths {
		events := load[model.WatchEvent](t, path)
		if i == 0 {
			first = events
		} else if diff := cmp.Diff(first, events); diff != "" {
			t.Errorf("%s differs from %s:\n%s", path, paths[0], diff)
		}
	}
	return first
}

func load[T any](t *testing.T, path string) (values []T) {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for decoder := json.NewDecoder(file); decoder.More(); {
		var value T
		if err := decoder.Decode(&value); err != nil {
			t.Fatal(err)
		}
		values = append(values, value)
	}
	return values
}

// figures are what the story reports.
type figures struct {
	Calls        int
	Acknowledged int
	Unknown      int
	Events       int
	// LongestGap is the longest time without an acknowledged write, in seconds.
	LongestGap   float64
	Seconds      float64
	CheckSeconds float64
	Lost         []string
}

type written struct {
	key   string
	value model.ValueOrHash
}

// figuresOf counts, and finds writes that were acknowledged and are not stored at the revision of their answer.
func figuresOf(t *testing.T, reports []report.ClientReport, stored []model.WatchEvent) figures {
	t.Helper()
	at := map[written]int64{}
	for _, event := range stored {
		if event.Type == model.PutOperation {
			at[written{event.Key, event.Value}] = event.Revision
		}
	}
	result := figures{Lost: []string{}}
	var times []int64
	for _, each := range reports {
		result.Events += each.WatchEventCount()
		for _, op := range each.KeyValue {
			result.Calls++
			request, response := op.Input.(model.EtcdRequest), op.Output.(model.MaybeEtcdResponse)
			if request.IsRead() {
				continue
			}
			if response.Error != "" {
				result.Unknown++
				continue
			}
			if response.Txn == nil || response.Txn.Failure {
				continue
			}
			result.Acknowledged++
			times = append(times, op.Return)
			for _, put := range putsOf(request) {
				if revision := at[written{put.Key, put.Value}]; revision != response.Revision {
					result.Lost = append(result.Lost, fmt.Sprintf("%s=%s: revision %d, stored at %d", put.Key, put.Value.Value, response.Revision, revision))
				}
			}
		}
	}
	sort.Slice(times, func(i, j int) bool { return times[i] < times[j] })
	for i := 1; i < len(times); i++ {
		result.LongestGap = max(result.LongestGap, time.Duration(times[i]-times[i-1]).Seconds())
	}
	if len(times) > 0 {
		result.Seconds = time.Duration(times[len(times)-1] - times[0]).Seconds()
	}
	return result
}

func putsOf(request model.EtcdRequest) (puts []model.PutOptions) {
	if request.Txn == nil {
		return nil
	}
	for _, operation := range request.Txn.OperationsOnSuccess {
		if operation.Type == model.PutOperation {
			puts = append(puts, operation.Put)
		}
	}
	return puts
}

// persistedRequests finds the requests that made the stored events, in their order. Every write has a value of its own.
func persistedRequests(t *testing.T, reports []report.ClientReport, stored []model.WatchEvent) []model.EtcdRequest {
	t.Helper()
	sent := map[written]model.EtcdRequest{}
	for _, each := range reports {
		for _, op := range each.KeyValue {
			request := op.Input.(model.EtcdRequest)
			for _, put := range putsOf(request) {
				sent[written{put.Key, put.Value}] = request
			}
		}
	}
	requests := []model.EtcdRequest{}
	var last int64
	for _, event := range stored {
		if event.Type != model.PutOperation || event.Revision == last {
			continue
		}
		request, found := sent[written{event.Key, event.Value}]
		if !found {
			t.Fatalf("%s=%s is stored, and no client wrote it", event.Key, event.Value.Value)
		}
		last = event.Revision
		requests = append(requests, request)
	}
	return requests
}

// revisions maps the revisions of the store, in which Kubernetes writes too, to those of a store with only the keys of the record,
// which the checker's model needs: an empty one has revision 1.
type revisions []int64

func revisionsOf(stored []model.WatchEvent) revisions {
	all := revisions{}
	for _, event := range stored {
		if len(all) == 0 || all[len(all)-1] != event.Revision {
			all = append(all, event.Revision)
		}
	}
	return all
}

// of is the revision that a store of only these keys had when the real one had this revision.
func (r revisions) of(revision int64) int64 {
	if revision == 0 {
		return 0
	}
	return 1 + int64(sort.Search(len(r), func(i int) bool { return r[i] > revision }))
}

func (r revisions) apply(client *report.ClientReport) {
	for i := range client.KeyValue {
		r.applyCall(&client.KeyValue[i])
	}
	for i := range client.Watch {
		watch := &client.Watch[i]
		// A watch begins at the first event of this revision or a later one.
		watch.Request.Revision = r.of(max(watch.Request.Revision-1, 1)) + 1
		for j := range watch.Responses {
			response := &watch.Responses[j]
			response.Revision = r.of(response.Revision)
			for k := range response.Events {
				event := &response.Events[k]
				event.Revision = r.of(event.Revision)
				if event.PrevValue != nil {
					event.PrevValue.ModRevision = r.of(event.PrevValue.ModRevision)
				}
			}
		}
	}
}

func (r revisions) applyCall(op *porcupine.Operation) {
	request, response := op.Input.(model.EtcdRequest), op.Output.(model.MaybeEtcdResponse)
	if request.Range != nil {
		request.Range.Revision = r.of(request.Range.Revision)
	}
	if request.Txn != nil {
		for i := range request.Txn.Conditions {
			condition := &request.Txn.Conditions[i]
			condition.ExpectedRevision = r.of(condition.ExpectedRevision)
		}
	}
	response.Revision = r.of(response.Revision)
	if response.Range != nil {
		r.applyKeys(response.Range.KVs)
	}
	if response.Txn != nil {
		for i := range response.Txn.Results {
			r.applyKeys(response.Txn.Results[i].KVs)
		}
	}
	op.Input, op.Output = request, response
}

func (r revisions) applyKeys(keys []model.KeyValue) {
	for i := range keys {
		keys[i].ModRevision = r.of(keys[i].ModRevision)
	}
}
