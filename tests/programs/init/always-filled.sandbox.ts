/**
 * Fields that the field's machines fill in every reply (tests/interop/always-filled.tsv), in the replies of init's methods on a
 * node of the test's own. tests/cluster/commands.story.ts checks the replies that need containers or a cluster.
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { silent } from '../../../src/cosi/log.ts'
import { metaMethods } from '../../../src/os/block/api/meta.ts'
import { decode, encode, type Plain } from '../../../src/rpc/codec.ts'
import { common, machine as machineEnums } from '../../../src/rpc/enums.ts'
import type { Methods } from '../../../src/rpc/messages.ts'
import { type MessageType, messageType, methodShape } from '../../../src/rpc/schema.ts'
import type { Method } from '../../../src/rpc/server/method.ts'
import { roleAccess } from '../../../src/rpc/server/resource-access.ts'
import { stateMethods } from '../../../src/rpc/server/state.ts'
import { alwaysFilled, stepsOf, unfilled } from '../../interop/always-filled.ts'
import { calledApart, everyMethod } from '../../interop/every-method.ts'
import { type SandboxNode, settledShape, startNode, useSandbox } from './sandbox-node.ts'

useSandbox()

const contract = readFileSync(join(import.meta.dir, '../../proto/contract/api-services.tsv'), 'utf8')
  .trim()
  .split('\n')
  .slice(1)
  .map((line) => line.split('\t'))
  .map(([pkg, service, method]) => `${pkg}.${service}/${method}` as keyof Methods)

const hostname = { namespace: 'network', type: 'HostnameStatuses.net.talos.dev' }

/** What is requested of the node. */
const requests: { readonly [Path in keyof Methods]?: object } = {
  'cosi.resource.State/Get': { ...hostname, id: 'hostname' },
  'cosi.resource.State/List': hostname,
  'cosi.resource.State/Watch': { ...hostname, id: 'hostname', apiVersion: 1 },
  'inspect.InspectService/ControllerRuntimeDependencies': {},
  'machine.ImageService/Verify': { imageRef: 'registry.test/image:v1' },
  'machine.MachineService/Bootstrap': {},
  'machine.MachineService/CPUFreqStats': {},
  'machine.MachineService/CPUInfo': {},
  'machine.MachineService/Containers': { namespace: 'system', driver: common.ContainerDriver.CONTAINERD },
  'machine.MachineService/Copy': { rootPath: '/etc/os-release' },
  'machine.MachineService/DiskStats': {},
  'machine.MachineService/DiskUsage': { paths: ['/etc'] },
  'machine.MachineService/Events': { tailEvents: 2 },
  'machine.MachineService/GenerateClientConfiguration': { roles: ['os:reader'], crtTtl: { seconds: 3600, nanos: 0 } },
  'machine.MachineService/Hostname': {},
  'machine.MachineService/Kubeconfig': {},
  'machine.MachineService/List': { root: '/etc', reportXattrs: true },
  'machine.MachineService/LoadAvg': {},
  'machine.MachineService/LogsContainers': {},
  'machine.MachineService/Memory': {},
  'machine.MachineService/NetworkDeviceStats': {},
  'machine.MachineService/Netstat': {
    filter: machineEnums.NetstatRequest.Filter.ALL,
    feature: { pid: false },
    l4proto: { tcp: true },
    netns: { hostnetwork: true },
  },
  'machine.MachineService/Processes': {},
  'machine.MachineService/Read': { path: '/etc/os-release' },
  'machine.MachineService/ServiceList': {},
  'machine.MachineService/SystemStat': {},
  'machine.MachineService/Version': {},
  'storage.StorageService/Disks': {},
  // It ends the node, so it comes last.
  'machine.MachineService/Reboot': {},
}

/** Methods that change a whole cluster or the system of a machine when they succeed: no cluster is given up to them. */
const answeredElsewhere = new Set([
  'machine.MachineService/EtcdDowngradeEnable',
  'machine.MachineService/EtcdForfeitLeadership',
  'machine.MachineService/EtcdLeaveCluster',
  'machine.MachineService/EtcdRecover',
  'machine.MachineService/EtcdRemoveMemberByID',
  'machine.MachineService/Restart',
  'machine.MachineService/Rollback',
  'machine.MachineService/Upgrade',
  'machine.LifecycleService/Install',
  'storage.StorageService/BlockDeviceWipe',
])

/** Files of this machine's kernel that the node reads as its own. */
const kernelFiles = ['meminfo', 'stat', 'loadavg', 'cpuinfo', 'diskstats', 'net/dev', '1/stat', '1/cmdline']

/** A socket whose process nobody knows. */
const oneSocket = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 20317 1 ffff8e2a 100 0 0 10 0
`

let here: SandboxNode
let methods: Map<string, Method>
beforeAll(async () => {
  here = await startNode(undefined, (root) => {
    for (const name of kernelFiles) {
      mkdirSync(dirname(join(root, 'proc', name)), { recursive: true })
      copyFileSync(join('/proc', name), join(root, 'proc', name))
    }
    mkdirSync(join(root, 'proc/self/net'))
    writeFileSync(join(root, 'proc/self/net/tcp'), oneSocket)
    writeFileSync(join(root, 'etc/os-release'), 'NAME="Ichor"\n')
  })
  await settledShape(here)
  const served = [...here.machine.methods, ...stateMethods(roleAccess)]
  methods = new Map(served.map((method) => [method.path, method]))
})
afterAll(() => here.stop())

/** Calls a method of the node; of a stream some replies are taken. */
async function repliesOf(method: Method, request: object): Promise<Plain[]> {
  const { request: requestType, reply: replyType } = methodShape(method.path)
  const stop = new AbortController()
  const context = {
    store: here.machine.store,
    roles: new Set(['os:admin']),
    signal: stop.signal,
    log: silent,
    hold() {},
    client: {},
    metadata: {},
  }
  // The wire decides what was filled: both messages go over it.
  const answer = method.handle(decode(requestType, encode(requestType, request)) as never, context as never)
  const replies: object[] = []
  if (method.kind === 'unary') replies.push((await answer) as object)
  else
    for await (const reply of answer as AsyncIterable<object>) {
      replies.push(reply)
      if (replies.length === 2) break
    }
  stop.abort()
  return replies.map((reply) => decode(replyType, encode(replyType, reply)))
}

describe('the table of fields that are always filled', () => {
  test('has every method of the contract', () => {
    expect([...new Set(alwaysFilled.map(({ method }) => method))].sort()).toEqual(contract.toSorted())
  })

  test('has every message in the replies, but for metadata', () => {
    const plain = (path: string) => path.replaceAll(/\[\+?\]/g, '')
    const listed = new Set(alwaysFilled.map(({ method, path }) => `${method} ${plain(path)}`))
    // What is in a message that may be absent needs no row.
    const absent = alwaysFilled
      .filter(({ when }) => /^(sometimes|refused)/.test(when))
      .map(({ method, path }) => `${method} ${plain(path)}.`)
    const inReplies = contract.flatMap((path) => messagesIn(methodShape(path).reply).map((at) => `${path} ${at}`))
    expect(inReplies.filter((at) => !listed.has(at) && !absent.some((above) => at.startsWith(above)))).toEqual([])
  })

  test('names fields that the messages have, as lists where they are lists', () => {
    for (const { method, path, when } of alwaysFilled) {
      expect(when).toMatch(/^(always|with(out)? \w+|configured|empty|(sometimes|refused): .+)$/)
      let type: MessageType = methodShape(method).reply
      for (const { field, list } of stepsOf(path)) {
        const shape = type.fields.find(({ name }) => name === field)
        expect({ method, path, field: shape?.name, list: list !== '' }).toEqual({ method, path, field, list: shape?.repeated === true })
        if (shape!.isMessage) type = messageType(shape!.type)
      }
    }
  })

  test('finds what a reply lacks', () => {
    const record = { l4proto: 'tcp', localip: '::', remoteip: '::', state: 10, process: {} }
    const netstat = (...records: object[]) => unfilled('machine.MachineService/Netstat', [{ messages: [{ connectrecord: records }] }])
    expect(netstat(record)).toEqual([])
    expect(netstat(record, { ...record, process: undefined, localip: '' })).toEqual([
      'messages[0].connectrecord[1].localip',
      'messages[0].connectrecord[1].process',
    ])
    expect(unfilled('machine.MachineService/Hostname', [{ messages: [] }])).toEqual(['messages[0]'])
    expect(unfilled('machine.DebugService/ContainerRun', [{ exitCode: 0 }, { stdoutData: 'x' }, {}])).toEqual(['stdoutData'])
    expect(unfilled('machine.MachineService/List', [{ name: 'a', relativeName: 'a', error: 'gone' }])).toEqual([])
    expect(unfilled('machine.MachineService/List', [{ name: 'a', relativeName: 'a' }])).toEqual(['mode'])
  })
})

/** Paths of all messages in a message: of its fields, and of those of its lists. */
function messagesIn(type: MessageType): string[] {
  const inner = type.fields.filter((field) => field.isMessage && !field.mapKey && field.name !== 'metadata')
  return inner.flatMap((field) => {
    if (field.type.startsWith('google.protobuf.')) return [field.name]
    return [field.name, ...messagesIn(messageType(field.type)).map((path) => `${field.name}.${path}`)]
  })
}

describe('replies have every field that is always filled', () => {
  test('of all methods: here, of a cluster, or with a reason why not', () => {
    const cluster = everyMethod({ controlPlane: '', worker: '', name: '', image: '', archive: '', guest: '', timeServer: '' })
    const inCluster = Object.entries(cluster).filter(
      ([, { answer }]) => !(answer !== null && typeof answer === 'object' && 'code' in answer),
    )
    const checked = new Set<string>([...Object.keys(requests), ...inCluster.map(([path]) => path), ...calledApart, ...answeredElsewhere])
    const refused = alwaysFilled.filter(({ when }) => /^(refused|empty)/.test(when)).map(({ method }) => method)
    const left = contract.filter((path) => !checked.has(path) && !refused.includes(path))
    // These have tests below, in tests/os/config/apply and in tests/os/lifecycle/upgrade.
    expect(left.toSorted()).toEqual([
      'machine.LifecycleService/Upgrade',
      'machine.MachineService/ApplyConfiguration',
      'machine.MachineService/MetaDelete',
      'machine.MachineService/MetaWrite',
    ])
  })

  test.each(Object.keys(requests) as (keyof Methods)[])('%s', async (path) => {
    const replies = await repliesOf(methods.get(path)!, requests[path]!)
    expect(replies.length).toBeGreaterThan(0)
    expect(unfilled(path, replies)).toEqual([])
  })

  test('of writes to META', async () => {
    const meta = { get() {}, set() {}, delete: () => true, flush: async () => {} }
    for (const method of metaMethods(meta as never))
      expect(unfilled(method.path, await repliesOf(method, { key: 0x0a, value: Buffer.from('x') }))).toEqual([])
  })
})
