package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/tests/v3/robustness/identity"
	"go.etcd.io/etcd/tests/v3/robustness/model"
	"go.uber.org/zap"
)

const (
	// Below this prefix are all keys of the record: Kubernetes writes others meanwhile.
	prefix   = "/robustness/"
	keyCount = 10
	// A call whose answer does not come by then has an unknown result.
	callTimeout = time.Second
)

type tlsFiles struct{ ca, cert, key string }

// config is nil for a cluster without TLS.
func (f tlsFiles) config() (*tls.Config, error) {
	if f.ca == "" {
		return nil, nil
	}
	return transport.TLSInfo{TrustedCAFile: f.ca, CertFile: f.cert, KeyFile: f.key}.ClientConfig()
}

// recorder is a client that records its calls: one at a time, as the checker requires.
type recorder struct {
	client       *clientv3.Client
	history      *model.AppendableHistory
	ids          identity.Provider
	base         time.Time
	lastRevision int64
}

func newClient(config *tls.Config, endpoints []string) (*clientv3.Client, error) {
	return clientv3.New(clientv3.Config{
		Endpoints:            endpoints,
		TLS:                  config,
		Logger:               zap.NewNop(),
		DialTimeout:          5 * time.Second,
		DialKeepAliveTime:    5 * time.Second,
		DialKeepAliveTimeout: 3 * time.Second,
	})
}

// mark writes a key of its own until that succeeds.
func (r *recorder) mark(name string) error {
	deadline := time.Now().Add(2 * time.Minute)
	for {
		// Each attempt has a value of its own, which shows the checker which of them was stored.
		err := r.put(context.Background(), prefix+name, 5*time.Second)
		if err == nil {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("writing the key %q: %w", name, err)
		}
		time.Sleep(500 * time.Millisecond)
	}
}

// traffic makes calls at an interval until the context ends.
func (r *recorder) traffic(ctx context.Context, interval time.Duration) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	failed := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		// After a failure a read finds out whether the member answers: many writes of unknown result make checking slow.
		failed = r.call(failed) != nil
	}
}

func (r *recorder) call(readOnly bool) error {
	// The call is completed although the traffic ends meanwhile.
	ctx := context.Background()
	choice := rand.IntN(100)
	switch {
	case readOnly || choice < 15:
		return r.get(ctx, key(), "", 0)
	case choice < 30:
		return r.get(ctx, prefix, clientv3.GetPrefixRangeEnd(prefix), 0)
	case choice < 40:
		return r.get(ctx, key(), "", r.lastRevision)
	case choice < 55:
		return r.compareAndSet(ctx)
	case choice < 70:
		return r.several(ctx)
	default:
		return r.put(ctx, key(), callTimeout)
	}
}

func key() string { return fmt.Sprintf("%s%d", prefix, rand.IntN(keyCount)) }

func (r *recorder) value() string { return fmt.Sprintf("%d", r.ids.NewRequestID()) }

func (r *recorder) put(ctx context.Context, key string, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	value := r.value()
	start := time.Since(r.base)
	response, err := r.client.Put(ctx, key, value)
	r.history.AppendPut(key, value, start, time.Since(r.base), response, err)
	if err == nil {
		r.lastRevision = response.Header.Revision
	}
	return err
}

func (r *recorder) get(ctx context.Context, start, end string, revision int64) error {
	_, err := r.read(ctx, start, end, revision)
	return err
}

func (r *recorder) read(ctx context.Context, from, to string, revision int64) (*clientv3.GetResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	options := []clientv3.OpOption{}
	if to != "" {
		options = append(options, clientv3.WithRange(to))
	}
	if revision != 0 {
		options = append(options, clientv3.WithRev(revision))
	}
	start := time.Since(r.base)
	response, err := r.client.Get(ctx, from, options...)
	r.history.AppendRange(from, to, revision, 0, start, time.Since(r.base), response, err)
	if err == nil {
		r.lastRevision = max(r.lastRevision, response.Header.Revision)
	}
	return response, err
}

// compareAndSet replaces a value only if nobody else did since it was read.
func (r *recorder) compareAndSet(ctx context.Context) error {
	key := key()
	found, err := r.read(ctx, key, "", 0)
	if err != nil {
		return err
	}
	var revision int64
	if len(found.Kvs) == 1 {
		revision = found.Kvs[0].ModRevision
	}
	condition := clientv3.Compare(clientv3.ModRevision(key), "=", revision)
	return r.commit(ctx, []clientv3.Cmp{condition}, clientv3.OpPut(key, r.value()))
}

// several writes, deletes and reads different keys in one transaction. A delete alone has no value by which it could be recognized.
func (r *recorder) several(ctx context.Context) error {
	keys := rand.Perm(keyCount)
	operations := []clientv3.Op{}
	for i, number := range keys[:4] {
		key := fmt.Sprintf("%s%d", prefix, number)
		switch choice := rand.IntN(3); {
		case i == 0 || choice == 0:
			operations = append(operations, clientv3.OpPut(key, r.value()))
		case choice == 1:
			operations = append(operations, clientv3.OpDelete(key))
		default:
			operations = append(operations, clientv3.OpGet(key))
		}
	}
	return r.commit(ctx, nil, operations...)
}

func (r *recorder) commit(ctx context.Context, conditions []clientv3.Cmp, operations ...clientv3.Op) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	start := time.Since(r.base)
	response, err := r.client.Txn(ctx).If(conditions...).Then(operations...).Commit()
	r.history.AppendTxn(conditions, operations, nil, start, time.Since(r.base), response, err)
	if err == nil {
		r.lastRevision = response.Header.Revision
	}
	return err
}

var errLate = errors.New("a watch did not receive all events in time")
