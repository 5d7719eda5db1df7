/** Every method of the machine API: served with the roles of the contract, or named below with the reason why it is not. */
import { describe, expect, test } from 'bun:test'
import { silent } from '../../src/cosi/log.ts'
import { Runtime } from '../../src/cosi/runtime.ts'
import { Store } from '../../src/cosi/store.ts'
import type { Machine } from '../../src/os/area.ts'
import { Meta } from '../../src/os/block/meta/meta.ts'
import type { Kernel, Mode } from '../../src/os/kernel.ts'
import { Sequencer } from '../../src/os/lifecycle/sequencer.ts'
import { AuditLog } from '../../src/os/runtime/audit/audit-log.ts'
import { Calls } from '../../src/os/runtime/calls.ts'
import { Events } from '../../src/os/runtime/events.ts'
import { LastProblem } from '../../src/os/runtime/last-problem.ts'
import { areas } from '../../src/programs/init/areas.ts'
import { methodShape } from '../../src/rpc/schema.ts'
import type { Method } from '../../src/rpc/server/method.ts'
import { roleAccess } from '../../src/rpc/server/resource-access.ts'
import { stateMethods } from '../../src/rpc/server/state.ts'
import { Supervisor } from '../../src/supervise/supervisor.ts'

const table = (await Bun.file(`${import.meta.dir}/../proto/contract/api-services.tsv`).text())
  .split('\n')
  .slice(1)
  .filter(Boolean)
  .map((line) => {
    const [pkg, service, method, clientStreams, serverStreams, , , roles = '', , , servedBy] = line.split('\t')
    const kind = { '00': 'unary', '01': 'server', '10': 'client', '11': 'bidi' }[`${clientStreams}${serverStreams}`]
    return { path: `${pkg}.${service}/${method}`, kind, roles: roles.split(',').sort(), servedBy }
  })

/** Methods that no node serves yet. */
const absent: Record<string, string> = {}

/** Methods that only a container node answers, by refusing them: machines learn them with disks and images. */
const refusedInContainers = new Set([
  'machine.LifecycleService/Install',
  'machine.LifecycleService/Upgrade',
  'machine.MachineService/MetaDelete',
  'machine.MachineService/MetaWrite',
  'machine.MachineService/Rollback',
  'machine.MachineService/Upgrade',
  'storage.StorageService/BlockDeviceWipe',
])

/** What init serves in a mode. Nothing of the kernel is opened by asking for the methods. */
function served(mode: Mode): Map<string, Method> {
  const store = new Store()
  const events = new Events()
  const machine: Machine = {
    kernel: { mode } as Kernel,
    store,
    runtime: new Runtime(store, { log: silent }),
    log: silent,
    supervisor: new Supervisor({ store }),
    oomFloor: -1000,
    problem: new LastProblem(),
    events,
    sequencer: new Sequencer(events, silent),
    meta: new Meta({ kernel: { mode } as Kernel, store, log: silent }),
    calls: new Calls(new AuditLog({ write() {} })),
    version: { name: 'Ichor', tag: 'v1.13.0', sha: '', built: '', arch: 'amd64' },
    spawn() {
      throw new Error('nothing is started here')
    },
    service() {
      throw new Error('nothing is started here')
    },
    end() {},
  }
  const methods = [...areas.flatMap((area) => area.methods?.(machine) ?? []), ...stateMethods(roleAccess)]
  expect(methods.map(({ path }) => path).toSorted()).toEqual([...new Set(methods.map(({ path }) => path))].toSorted())
  return new Map(methods.map((method) => [method.path, method]))
}

const inContainer = served('container')
const onMetal = served('metal')
const machined = table.filter(({ servedBy }) => servedBy === 'machined')

describe('the machine API', () => {
  test('has no method beside those of the contract but in a package of our own, and none is for everybody', () => {
    const known = new Set(table.map(({ path }) => path))
    const more = [...inContainer.values(), ...onMetal.values()].filter(({ path }) => !known.has(path))
    expect(more.map(({ path }) => path).filter((path) => !path.startsWith('ichor.v1.'))).toEqual([])
    expect(more.filter(({ access }) => access === 'anyone' || access.length === 0)).toEqual([])
  })

  test('serves every method of the contract but those named here, in containers and on machines', () => {
    const missing = (methods: Map<string, Method>) => machined.map(({ path }) => path).filter((path) => !methods.has(path))
    expect(missing(inContainer).toSorted()).toEqual(Object.keys(absent).toSorted())
    expect(missing(onMetal).toSorted()).toEqual(Object.keys(absent).toSorted())
  })

  test.each(machined.filter(({ path }) => inContainer.has(path)))(
    '$path is for the roles of the contract, and streams as it says',
    ({ path, kind, roles }) => {
      const method = inContainer.get(path)!
      expect([...(method.access as readonly string[])].sort()).toEqual(roles)
      expect(method.kind as string).toBe(kind!)
      expect(onMetal.get(path)?.access ?? method.access).toEqual(method.access)
    },
  )

  test.each(machined)('$path is known by name', ({ path }) => {
    expect(methodShape(path as Parameters<typeof methodShape>[0]).request).toBeDefined()
  })

  test.each([...refusedInContainers])('%s is refused by a container node in one line', async (path) => {
    const { handle, kind } = inContainer.get(path)!
    const call = async () => {
      const answer = handle({ devices: [] } as never, {} as never)
      if (kind === 'server') for await (const _ of answer as AsyncIterable<unknown>) break
      await answer
    }
    await expect(call()).rejects.toMatchObject({
      status: 'FailedPrecondition',
      message: expect.stringMatching(/^[^\n]*: method is not supported in container mode: [^\n]*$/),
    })
  })
})
