import { afterEach, expect, setSystemTime, test } from 'bun:test'
import { systemClock } from '../../../../src/cosi/clock.ts'
import { silent } from '../../../../src/cosi/log.ts'
import { Store } from '../../../../src/cosi/store.ts'
import { Meta } from '../../../../src/os/block/meta/meta.ts'
import { SystemDisk } from '../../../../src/os/block/resources/system-disk.ts'
import { NodeStatus } from '../../../../src/os/k8s/resources/node.ts'
import { Nodename } from '../../../../src/os/k8s/resources/nodename.ts'
import type { Kernel } from '../../../../src/os/kernel.ts'
import { withBootLoader } from '../../../../src/os/lifecycle/slots/boot-disk.ts'
import { SystemdBoot } from '../../../../src/os/lifecycle/slots/systemd-boot.ts'
import { SystemChanges } from '../../../../src/os/lifecycle/system-changes.ts'
import { failuresOf, recordFailure, recordTrial, trialOf } from '../../../../src/os/lifecycle/upgrade/records.ts'
import { unmetConditions, watchTrial } from '../../../../src/os/lifecycle/upgrade/trial.ts'
import { beginRollback } from '../../../../src/os/lifecycle/upgrade/upgrade.ts'
import { NodeAddress } from '../../../../src/os/network/resources/node-address.ts'
import { formatFat } from '../../../../src/wire/fat/format.ts'
import { FatVolume } from '../../../../src/wire/fat/volume.ts'
import { newTable, writeTable } from '../../../../src/wire/gpt/table.ts'
import { partitionTypes } from '../../../../src/wire/gpt/types.ts'
import { SparseDisk } from '../../../support/sparse-disk.ts'
import { blockDevices } from '../install/block-devices.ts'
import { testRelease } from '../slots/release.ts'

const size = 2 ** 27
const never = new AbortController().signal
const next = testRelease('v1.13.1')

/** A machine with a good release in slot A and another on trial in slot B, started from `running`. */
async function machine(running: 'a' | 'b', { up = ['machined', 'apid', 'containerd'], minutes = 30, begin = true } = {}) {
  const disk = new SparseDisk(size)
  const block = blockDevices('/dev/vda', disk)
  const table = newTable({ sectorSize: 512, size, diskGuid: crypto.randomUUID() })
  const first = table.firstUsable
  const last = table.lastUsable
  table.partitions.push({ index: 1, type: partitionTypes.efi, guid: crypto.randomUUID(), first, last, attributes: 0n, name: 'EFI' })
  for (const step of writeTable(table, { protective: true })) for (const { offset, bytes } of step) disk.write(offset, bytes)
  block.syncPartitions('', [{ index: 1, offset: first * 512, size: (last + 1 - first) * 512 }])
  const partition = await block.openDevice('/dev/vda1')
  await formatFat(partition, { label: 'EFI', serial: 1 })
  const loader = new SystemdBoot(await FatVolume.open(partition))
  const one = testRelease('v1.13.0')
  await loader.prepare()
  await loader.write('a', one)
  await loader.keep('a')
  const store = new Store()
  store.put(SystemDisk, 'system-disk', { diskID: 'vda', devPath: '/dev/vda' })
  const kernel = {
    block,
    files: { readTextIfThere: () => `ichor.slot=${running} ichor.trial-minutes=${minutes}`, exists: () => false },
  } as unknown as Kernel
  const meta = new Meta({ kernel, store, log: silent })
  if (begin) {
    await loader.write('b', next)
    await loader.try('b')
    await recordTrial({ meta }, { slot: 'b', version: next.version, image: next.image, services: up, nodeReady: false, reachable: false })
  }
  const supervisor = {
    get: () => undefined,
    isUp: (id: string) => up.includes(id),
    subscribe: () => () => {},
    until: async () => {},
  }
  const known = ['machined', 'apid', 'containerd', 'etcd', 'kubelet']
  const service = (id: string) => {
    if (!known.includes(id)) throw new Error('not registered')
    return {}
  }
  return {
    store,
    meta,
    parts: {
      clock: systemClock,
      version: { arch: 'amd64', tag: 'v1.13.0' },
      kernel,
      store,
      supervisor,
      log: silent,
      meta,
      service,
      systemChanges: new SystemChanges(),
    } as unknown as Parameters<typeof watchTrial>[0],
  }
}

afterEach(() => setSystemTime())

const state = ({ parts }: { parts: Parameters<typeof watchTrial>[0] }) => withBootLoader(parts, (loader) => loader.state())

test('a release as healthy as the previous one is marked good', async () => {
  const here = await machine('b')
  expect(await watchTrial(here.parts, never, 10)).toBe('good')
  const after = await state(here)
  expect(after).toMatchObject({ good: 'b', next: 'b' })
  expect(after.trial).toBeUndefined()
  expect(trialOf(here)).toBeUndefined()
  expect(failuresOf(here)).toEqual([])
})

test('a release that is not healthy in time is rolled back and recorded', async () => {
  const here = await machine('b', { up: ['machined', 'containerd'], minutes: 0.001 })
  expect(await watchTrial(here.parts, never, 10)).toBe('back')
  expect(await state(here)).toMatchObject({ good: 'a', next: 'a' })
  const failures = [{ version: 'v1.13.1', image: next.image, why: expect.stringContaining('service apid') }]
  expect(failuresOf(here)).toMatchObject(failures)
  // The next start is from the release before, which finds nothing left to do but to clear up.
  expect(await watchTrial(here.parts, never, 10)).toBe('none')
  expect(failuresOf(here)).toMatchObject(failures)
  expect(trialOf(here)).toBeUndefined()
})

test.each([86_400_000, -86_400_000])('a step of the wall clock by %d ms ends no trial and lengthens none', async (step) => {
  const up = ['machined', 'containerd']
  const slow = await machine('b', { up })
  // The clock is stepped while the trial waits for apid; then apid comes up.
  const look = slow.parts.supervisor.isUp
  let looks = 0
  slow.parts.supervisor.isUp = (id) => {
    if (++looks === 1) setSystemTime(new Date(Date.now() + step))
    if (looks === 4) up.push('apid')
    return look.call(slow.parts.supervisor, id)
  }
  slow.parts.supervisor.subscribe = (listener) => {
    const timer = setTimeout(listener, 1)
    return () => {
      clearTimeout(timer)
      return true
    }
  }
  expect(await watchTrial(slow.parts, never, 5)).toBe('good')
  setSystemTime()
  const down = await machine('b', { up: ['machined', 'containerd'], minutes: 0.001 })
  down.parts.supervisor.subscribe = () => {
    setSystemTime(new Date(Date.now() + step))
    return () => true
  }
  expect(await watchTrial(down.parts, never, 5)).toBe('back')
})

test('a release that never came up is recorded by the previous one', async () => {
  const here = await machine('a')
  expect(await watchTrial(here.parts, never, 10)).toBe('none')
  expect((await state(here)).trial).toBeUndefined()
  expect(failuresOf(here)).toMatchObject([{ version: 'v1.13.1' }])
  expect(trialOf(here)).toBeUndefined()
})

test('without a trial nothing happens', async () => {
  const here = await machine('a', { begin: false })
  expect(await watchTrial(here.parts, never, 10)).toBe('none')
  expect(failuresOf(here)).toEqual([])
})

test('services that still exist and the Kubernetes node must be healthy as before', async () => {
  const { parts, store } = await machine('b', { up: ['machined', 'apid', 'containerd', 'etcd'] })
  const before = { services: ['etcd', 'kubelet', 'gone-service'], nodeReady: true, reachable: false }
  expect(unmetConditions(parts, before)).toEqual(['service kubelet', 'the node is not ready in Kubernetes'])
  store.put(Nodename, 'nodename', { nodename: 'n1', hostnameVersion: '1', skipNodeRegistration: false })
  store.put(NodeStatus, 'n1', { nodename: 'n1', nodeReady: true, unschedulable: false, labels: {}, annotations: {}, podCIDRs: [] })
  expect(unmetConditions(parts, before)).toEqual(['service kubelet'])
  // A machine that waits for its cluster had no healthy etcd: nothing is missing.
  expect(unmetConditions(parts, { services: [], nodeReady: false, reachable: false })).toEqual([])
})

test('a machine that was reachable must have a routable address again', async () => {
  const { parts, store } = await machine('b')
  const before = { services: [], nodeReady: false, reachable: true }
  const address = (...addresses: string[]) => store.put(NodeAddress, 'current', { addresses, sortAlgorithm: 'v1' })
  expect(unmetConditions(parts, before)).toEqual(['the machine has no address'])
  address('127.0.0.1/8', '::1/128', 'fe80::1/64')
  expect(unmetConditions(parts, before)).toEqual(['the machine has no address'])
  address('127.0.0.1/8', '10.0.2.15/24')
  expect(unmetConditions(parts, before)).toEqual([])
})

test('rolling back puts the other slot on trial', async () => {
  const { rollback, ...here } = await upgraded()
  expect(await rollback()).toEqual({ slot: 'a', version: 'v1.13.0' })
  expect(await state(here)).toMatchObject({ good: 'b', next: 'a', trial: { slot: 'a', left: 3 } })
  expect(trialOf(here)).toMatchObject({ slot: 'a', version: 'v1.13.0' })
})

test('a release that failed here is no rollback target', async () => {
  const { rollback, ...here } = await upgraded()
  const { a } = (await state(here)).slots
  await recordFailure(here, { version: 'v1.13.0', image: a!.image, why: 'it did not come up' })
  await expect(rollback()).rejects.toThrow('slot A holds v1.13.0, which failed on this node at')
  expect((await state(here)).trial).toBeUndefined()
})

/** A machine whose upgrade to slot B has proven itself. */
async function upgraded() {
  const here = await machine('b')
  await watchTrial(here.parts, never, 10)
  const parts = { ...here.parts, supervisor: { ...here.parts.supervisor, list: () => [] } }
  return { ...here, rollback: () => beginRollback(parts as unknown as Parameters<typeof beginRollback>[0]) }
}
