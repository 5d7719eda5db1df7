import { expect, test } from 'bun:test'
import { Store } from '../../../src/cosi/store.ts'
import { MachineType } from '../../../src/os/config/resources/machine-type.ts'
import { Nodename } from '../../../src/os/k8s/resources/nodename.ts'
import { StaticPodStatus } from '../../../src/os/k8s/resources/static-pod.ts'
import { NetworkStatus } from '../../../src/os/network/resources/network-status.ts'
import { Service } from '../../../src/os/runtime/resources/service.ts'
import { unmetConditionsOf } from '../../../src/os/runtime/unmet-conditions.ts'
import { TimeStatus } from '../../../src/os/time/resources/time-status.ts'

test('every unmet condition names the resources that do not hold, also where names look like parts of its text', () => {
  const store = new Store()
  const runs = { running: true, healthy: true, unknown: false }
  store.put(MachineType, 'machine-type', 'controlplane')
  store.put(TimeStatus, 'node', { synced: false, epoch: 0, syncDisabled: false })
  store.put(NetworkStatus, 'status', { addressReady: true, connectivityReady: false, hostnameReady: true, etcFilesReady: true })
  for (const id of ['apid', 'machined', 'cri', 'kubelet', 'etcd']) store.put(Service, id, runs)
  store.put(Service, 'ext-a, b', { ...runs, healthy: false })
  store.put(Nodename, 'nodename', { nodename: 'cp', hostnameVersion: '1', skipNodeRegistration: false })
  store.put(StaticPodStatus, 'kube-system/x not ready', { conditions: [{ type: 'Ready', status: 'False' }] })
  store.put(StaticPodStatus, 'kube-system/y', { conditions: [{ type: 'Ready', status: 'True' }] })
  const found = unmetConditionsOf(store)
  expect(found.map(({ name, reason }) => `${name}: ${reason}`)).toEqual([
    'time: time is not synced',
    'network: waiting on: connectivity',
    'services: trustd not running, ext-a, b not healthy',
    'nodeReady: node "cp" status is not available yet',
    'staticPods: kube-system/x not ready not ready',
  ])
  expect(found.map(({ targets }) => targets.map(({ type, id }) => `${type.displayType} ${id}`))).toEqual([
    ['TimeStatus node'],
    ['NetworkStatus status'],
    ['Service trustd', 'Service ext-a, b'],
    ['NodeStatus cp'],
    ['StaticPodStatus kube-system/x not ready'],
  ])
})
