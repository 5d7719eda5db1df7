import { afterEach, beforeEach, expect, test } from 'bun:test'
import { Store } from '../../src/cosi/store.ts'
import { ociSpec } from '../../src/supervise/containerd/spec.ts'
import type { ServiceDefinition } from '../../src/supervise/definition.ts'
import { container, type Pipe } from '../../src/supervise/runner/container.ts'
import { Supervisor } from '../../src/supervise/supervisor.ts'
import { ScriptedContainerd } from './scripted-containerd.ts'

let daemon: ScriptedContainerd
beforeEach(async () => {
  daemon = await new ScriptedContainerd().start()
})
afterEach(() => daemon.close())

/** A pipe that already holds all output of the container. */
const printing =
  (text: string) =>
  (id: string): Pipe => ({ path: `/pipes/${id}`, stream: new Blob([text]).stream(), opened() {}, close: async () => {} })

function apid(more: Partial<ServiceDefinition> = {}): ServiceDefinition {
  return {
    id: 'apid',
    dependsOn: [],
    restart: 'always',
    runner: container({
      containerd: daemon.client,
      namespace: 'system',
      root: { folder: '/', readonly: true },
      makePipe: printing('hello\n'),
      spec: ({ oom }) => ociSpec({ args: ['/usr/bin/apid'], uid: 50, oom, cgroup: '/system/apid', cgroupVersion: 2 }),
    }),
    ...more,
  }
}

async function until(supervisor: Supervisor, message: string): Promise<void> {
  await new Promise<void>((resolve) => supervisor.subscribe((event) => event.message.includes(message) && resolve()))
}

test('a container is created, started and reported; its output is kept', async () => {
  const supervisor = new Supervisor({ store: new Store() })
  supervisor.load(apid({ oom: -998 }))
  supervisor.start('apid')
  await supervisor.until('apid', 'up')
  expect(supervisor.get('apid')).toMatchObject({ state: 'Running', pid: 101 })
  expect(supervisor.get('apid')?.events.at(-1)?.message).toBe('Started task apid (PID 101) for container apid')
  expect(daemon.calls).toEqual(['create apid', 'task apid on bind / bind,ro'])
  expect(daemon.containers.get('apid')?.spec).toMatchObject({
    process: {
      args: ['/usr/bin/apid'],
      user: { uid: 50, gid: 50 },
      noNewPrivileges: true,
      oomScoreAdj: -998,
      capabilities: { bounding: [] },
    },
    linux: { cgroupsPath: '/system/apid', namespaces: [{ type: 'mount' }, { type: 'pid' }, { type: 'ipc' }, { type: 'cgroup' }] },
  })
  await supervisor.stop('apid')
  expect(supervisor.logs.get('apid')?.toString()).toBe('hello\n')
  expect(daemon.calls.slice(2)).toEqual(['kill apid 15', 'delete task apid', 'delete apid'])
})

test('leftovers of an earlier run are removed first', async () => {
  daemon.containers.set('apid', { spec: {}, snapshotKey: '' })
  daemon.tasks.set('apid', { pid: 7, status: 2, exitStatus: 0, ended: Promise.withResolvers() })
  const supervisor = new Supervisor({ store: new Store() })
  supervisor.load(apid())
  supervisor.start('apid')
  await supervisor.until('apid', 'up')
  expect(daemon.calls.slice(0, 4)).toEqual(['kill apid 9', 'delete task apid', 'delete apid', 'create apid'])
  await supervisor.stop('apid')
})

test('a container outlives its daemon: a broken connection is not its end, which is reported afterwards', async () => {
  const supervisor = new Supervisor({ store: new Store() })
  supervisor.load(apid({ restart: 'never' }))
  supervisor.start('apid')
  await supervisor.until('apid', 'up')
  await daemon.vanish()
  await daemon.start()
  expect(supervisor.get('apid')?.state).toBe('Running')
  const ended = until(supervisor, 'Task apid')
  daemon.end('apid', 137)
  await ended
  expect(supervisor.get('apid')).toMatchObject({ state: 'Failed' })
  expect(supervisor.get('apid')?.events.at(-1)?.message).toBe('Task apid was killed by signal 9')
})

test('a container that cannot be created is reported and retried', async () => {
  const supervisor = new Supervisor({ store: new Store() })
  await daemon.vanish()
  supervisor.load(apid())
  const logged = until(supervisor, 'starting again in 5s')
  supervisor.start('apid')
  await logged
  expect(supervisor.get('apid')?.state).toBe('Waiting')
  await supervisor.stop('apid')
  await daemon.start()
})

test('its process is registered before it runs, so that its first call is attributed to it', async () => {
  const supervisor = new Supervisor({ store: new Store() })
  const seen: (number | undefined)[] = []
  daemon.starting = () => seen.push(supervisor.get('apid')?.pid)
  supervisor.load(apid())
  supervisor.start('apid')
  await supervisor.until('apid', 'up')
  expect(seen).toEqual([101])
  await supervisor.stop('apid')
  expect(supervisor.get('apid')?.pid).toBeUndefined()
})

test('its last lines are kept, however late the pipe delivers them', async () => {
  const supervisor = new Supervisor({ store: new Store() })
  const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>()
  const writer = writable.getWriter()
  let closed = false
  const makePipe = (id: string): Pipe => ({
    path: `/pipes/${id}`,
    stream: readable,
    opened() {},
    async close() {
      closed = true
    },
  })
  const runner = container({ containerd: daemon.client, namespace: 'system', root: { folder: '/' }, makePipe, spec: () => ({}) })
  supervisor.load(apid({ restart: 'never', runner }))
  supervisor.start('apid')
  await supervisor.until('apid', 'up')
  const gone = new Promise<void>((resolve) => {
    daemon.deleted = () => resolve()
  })
  daemon.end('apid', 1)
  await gone
  // The task is removed, and only now the rest of its output comes.
  for (let i = 0; i < 100; i++) await writer.write(Buffer.from(`line ${i}\n`))
  expect(closed).toBe(false)
  await writer.close()
  await supervisor.until('apid', 'down')
  expect(closed).toBe(true)
  expect(supervisor.logs.get('apid')?.toString()).toEndWith('line 99\n')
})
