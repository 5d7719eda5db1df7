import { expect, test } from 'bun:test'
import { type Method, readers, serverStream, unary } from '../../../src/rpc/server/method.ts'
import { talosctl, transcript } from './peer.ts'

/** The rows of a recorded table, cut where its header begins each column. */
function rows(name: string): Record<string, string>[] {
  const [header = '', ...lines] = transcript(name).stdout.split('\n').filter(Boolean)
  const starts = [...header.matchAll(/\S+(?: \S+)*/g)].map((match) => [match[0], match.index] as const)
  return lines.map((line) =>
    Object.fromEntries(
      starts.map(([title, at], index) => [
        title,
        [...line]
          .slice(at, starts[index + 1]?.[1])
          .join('')
          .trimEnd(),
      ]),
    ),
  )
}

async function expectRecorded(name: string, methods: Method[], args?: string[]): Promise<void> {
  const recorded = transcript(name)
  const outcome = await talosctl(methods, args ?? recorded.args)
  expect(outcome.stderr).toBe('')
  expect(outcome.stdout).toBe(recorded.stdout)
  expect(outcome.code).toBe(recorded.code)
}

for (const name of ['memory', 'memory-verbose']) {
  test(`${name} is shown as recorded`, async () => {
    const verbose = transcript('memory-verbose').stdout
    const figures = Object.fromEntries(
      [...verbose.matchAll(/^(\w+): (\d+)(?: kB)?$/gm)].map(([, key = '', value]) => [key.toLowerCase(), Number(value)]),
    )
    const table = {
      memtotal: 24684084,
      memfree: 17601 * 1024 + 600,
      buffers: 9280,
      cached: 2593 * 1024,
      shmem: 10820,
      memavailable: 20561 * 1024,
    }
    const meminfo = name === 'memory' ? table : figures
    await expectRecorded(name, [unary('machine.MachineService/Memory', readers, () => ({ messages: [{ meminfo }] }))])
  })
}

test('containers of Kubernetes hang below their pods', async () => {
  const containers = rows('containers-k').map(({ NAMESPACE, ID = '', IMAGE, PID, STATUS }) => {
    const id = ID.replace('└─ ', '')
    return { namespace: NAMESPACE, id, podId: ID === id ? id : id.split(':')[0], image: IMAGE, pid: Number(PID), status: STATUS }
  })
  const method = unary('machine.MachineService/Containers', readers, ({ namespace, driver }) => {
    expect([namespace, driver]).toEqual(['k8s.io', 1])
    return { messages: [{ containers: containers.toReversed().toSorted((a, b) => (a.podId === b.podId ? 0 : -1)) }] }
  })
  await expectRecorded('containers-k', [method])
})

test('containers of the system are listed', async () => {
  const containers = rows('containers').map(({ NAMESPACE, ID, PID, STATUS }) => ({
    namespace: NAMESPACE,
    id: ID,
    podId: ID,
    pid: Number(PID),
    status: STATUS,
  }))
  await expectRecorded('containers', [unary('machine.MachineService/Containers', readers, () => ({ messages: [{ containers }] }))])
})

for (const name of ['stats', 'stats-k']) {
  test(`${name} shows megabytes and nanoseconds`, async () => {
    const stats = rows(name).map(({ NAMESPACE, ID = '', CPU, 'MEMORY(MB)': memory }) => {
      const id = ID.replace('└─ ', '')
      return {
        namespace: NAMESPACE,
        id,
        podId: ID === id ? id : 'pod',
        memoryUsage: Math.round(Number(memory) * 1e6),
        cpuUsage: Number(CPU),
      }
    })
    await expectRecorded(name, [unary('machine.MachineService/Stats', readers, () => ({ messages: [{ stats }] }))])
  })
}

test('mounts show gigabytes, percent and leave out what has no size', async () => {
  const gigabyte = 1e9
  const method = unary('machine.MachineService/Mounts', readers, () => ({
    messages: [
      {
        stats: [
          { filesystem: '/dev/vda', size: 270.55 * gigabyte, available: 60.52 * gigabyte, mountedOn: '/' },
          { filesystem: 'proc', size: 0, available: 0, mountedOn: '/proc' },
          { filesystem: 'tmpfs', size: 0.07 * gigabyte, available: 0.07 * gigabyte, mountedOn: '/dev' },
        ],
      },
    ],
  }))
  const { stdout } = await talosctl([method], ['mounts'])
  const recorded = transcript('mounts').stdout.split('\n')
  expect(stdout.split('\n')).toEqual([
    recorded[0] ?? '',
    '10.6.0.2   /dev/vda     270.55     210.03     60.52           77.63%         /',
    recorded[2] ?? '',
    '',
  ])
})

test('processes are sorted by memory or by time, and what cannot be printed is a blank', async () => {
  const method = unary('machine.MachineService/Processes', readers, () => ({
    messages: [
      {
        processes: [
          {
            pid: 1,
            state: 'S',
            threads: 11,
            cpuTime: 38.01,
            virtualMemory: 1.4e9,
            residentMemory: 129e6,
            executable: '/sbin/init',
            args: '/sbin/init',
          },
          {
            pid: 400,
            state: 'S',
            threads: 10,
            cpuTime: 11.66,
            virtualMemory: 1.6e9,
            residentMemory: 311e6,
            executable: '/usr/bin/kube',
            args: 'kube --a=b\n--c',
          },
          { pid: 2, state: 'S', threads: 1, command: 'kthreadd' },
        ],
      },
    ],
  }))
  expect((await talosctl([method], ['processes'])).stdout).toBe(
    [
      'NODE      PID  STATE  THREADS  CPU-TIME  VIRTMEM  RESMEM  LABEL  COMMAND',
      '10.6.0.2  400  S      10       11.66     1.6 GB   311 MB         /usr/bin/kube --a=b --c',
      '10.6.0.2  1    S      11       38.01     1.4 GB   129 MB         /sbin/init',
      '10.6.0.2  2    S      1        0.00      0 B      0 B            kthreadd',
      '',
    ].join('\n'),
  )
  expect((await talosctl([method], ['ps', '-s', 'cpu'])).stdout.split('\n')[1]).toContain('/sbin/init')
})

const services = rows('services').map(({ SERVICE, STATE, 'LAST EVENT': msg, 'LAST CHANGE': change = '' }) => {
  const [, minutes, seconds] = /(\d+)m(\d+)s/.exec(change) ?? []
  const ts = { seconds: Date.parse('2026-11-21T09:52:04Z') / 1000 - Number(minutes) * 60 - Number(seconds), nanos: 0 }
  return { id: SERVICE, state: STATE, events: { events: [{ msg, state: STATE, ts }] }, health: { unknown: false, healthy: true } }
})

test('services are listed with how long ago they changed', async () => {
  await expectRecorded('services', [unary('machine.MachineService/ServiceList', readers, () => ({ messages: [{ services }] }))])
})

test('a service is shown with its events, newest first', async () => {
  const recorded = transcript('service-apid')
    .stdout.split('\n')
    .filter((line) => line.includes('['))
    .map((line) => line.replace(/^EVENTS/, '').trim())
  const events = recorded.toReversed().map((line) => {
    const [, state = '', msg = '', minutes, seconds] = /^\[(\w+)\]: (.*) \((\d+)m(\d+)s ago\)$/.exec(line) ?? []
    return { state, msg, ts: { seconds: Date.parse('2026-11-21T09:52:04Z') / 1000 - Number(minutes) * 60 - Number(seconds), nanos: 0 } }
  })
  const apid = { id: 'apid', state: 'Running', events: { events }, health: { healthy: true } }
  await expectRecorded('service-apid', [unary('machine.MachineService/ServiceList', readers, () => ({ messages: [{ services: [apid] }] }))])
})

test('a service that is on no node is reported with those that are', async () => {
  const method = unary('machine.MachineService/ServiceList', readers, () => ({ messages: [{ services }] }))
  const { code, stdout, stderr } = await talosctl([method], ['service', 'nope'])
  expect([code, stdout]).toEqual([1, ''])
  expect(stderr).toStartWith('service "nope" is not registered on any nodes: there are apid, ')
})

test('a service is restarted on the named nodes and the answer shown', async () => {
  const method = unary('machine.MachineService/ServiceRestart', readers, ({ id }, { metadata: sent }) => {
    expect(sent.nodes).toEqual(['10.6.0.2'])
    return { messages: [{ resp: `Service "${id}" restarted` }] }
  })
  expect((await talosctl([method], ['service', 'apid', 'restart'])).stdout).toBe(
    'NODE       RESPONSE\n10.6.0.2   Service "apid" restarted\n',
  )
})

test('etcd members have hexadecimal ids', async () => {
  const members = rows('etcd-members').map((row) => ({
    id: BigInt(`0x${row.ID}`).toString(),
    hostname: row.HOSTNAME,
    peerUrls: [row['PEER URLS'] ?? ''],
    clientUrls: [row['CLIENT URLS'] ?? ''],
  }))
  await expectRecorded('etcd-members', [unary('machine.MachineService/EtcdMemberList', readers, () => ({ messages: [{ members }] }))])
  const other = await talosctl(
    [unary('machine.MachineService/EtcdMemberList', readers, () => ({ messages: [{ members }] }))],
    ['etcd', 'member', 'list'],
  )
  expect(other.stdout).toBe(transcript('etcd-members').stdout)
})

test('etcd status shows how much of the database is in use', async () => {
  const id = BigInt('0x203d8e93873b856e').toString()
  const memberStatus = {
    memberId: id,
    leader: id,
    dbSize: 1_298_432,
    dbSizeInUse: 1_298_432,
    raftIndex: 1237,
    raftTerm: 2,
    raftAppliedIndex: 1237,
    protocolVersion: '3.6.16',
    storageVersion: '3.6.0',
  }
  await expectRecorded('etcd-status', [unary('machine.MachineService/EtcdStatus', readers, () => ({ messages: [{ memberStatus }] }))])
})

test('files are listed by name', async () => {
  const files = rows('ls').map(({ NAME }) => ({ relativeName: NAME }))
  const method = serverStream('machine.MachineService/List', readers, async function* (request) {
    expect(request).toMatchObject({ root: '/', recurse: false, types: [] })
    yield* files
  })
  await expectRecorded('ls', [method])
})

test('files are listed by type', async () => {
  const files = rows('ls-type').map(({ NAME }) => ({ relativeName: NAME }))
  const method = serverStream('machine.MachineService/List', readers, async function* (request) {
    expect(request.types).toEqual([1])
    yield* files
  })
  await expectRecorded('ls-type', [method])
})

test('files are listed with mode, owner, size, time and where links lead', async () => {
  const letters = 'rwxrwxrwx'
  const files = rows('ls-l').map((row) => {
    const { MODE = '', NAME = '' } = row
    const bits = [...letters].reduce((mode, _, index) => mode * 2 + (MODE[index + 1] === '-' ? 0 : 1), 0)
    const kind = { d: 2 ** 31, L: 2 ** 27 }[MODE[0] ?? ''] ?? 0
    const [relativeName, link] = NAME.split(' -> ')
    const modified = new Date(`${row.LASTMOD} 2026`).getTime() / 1000
    return {
      relativeName,
      link,
      mode: kind + bits,
      uid: Number(row.UID),
      gid: Number(row.GID),
      size: Number(row['SIZE(B)']),
      modified,
    }
  })
  await expectRecorded('ls-l', [
    serverStream('machine.MachineService/List', readers, async function* () {
      yield* files
    }),
  ])
})

test('a file that cannot be read is an error on stderr, and the others are shown', async () => {
  const method = serverStream('machine.MachineService/List', readers, async function* () {
    yield { name: '/x/secret', error: 'permission denied' }
    yield { name: '/x/a', relativeName: 'a' }
  })
  const { code, stdout, stderr } = await talosctl([method], ['list', '/x'])
  expect({ code, stdout, stderr }).toEqual({
    code: 1,
    stdout: 'NODE       NAME\n10.6.0.2   a\n',
    stderr: '1 error occurred:\n\t* 10.6.0.2: error reading file /x/secret: permission denied\n',
  })
})

test('the depth of a list goes on the wire as it is given, and without limit as -1', async () => {
  const requests: object[] = []
  const method = serverStream('machine.MachineService/List', readers, async function* ({ recurse, recursionDepth }) {
    requests.push({ recurse, recursionDepth })
    yield* []
  })
  for (const flags of [[], ['-d', '0'], ['-d', '1'], ['-d', '3'], ['-d', '-1'], ['--depth=-1'], ['-r']])
    expect(await talosctl([method], ['list', '/x', ...flags])).toMatchObject({ code: 0, stderr: '' })
  expect(requests).toEqual([
    { recurse: false, recursionDepth: 1 },
    { recurse: false, recursionDepth: 0 },
    { recurse: false, recursionDepth: 1 },
    { recurse: true, recursionDepth: 3 },
    { recurse: true, recursionDepth: -1 },
    { recurse: true, recursionDepth: -1 },
    { recurse: true, recursionDepth: -1 },
  ])
})

test('the depth of usage goes on the wire as a number of levels', async () => {
  const requests: number[] = []
  const method = serverStream('machine.MachineService/DiskUsage', readers, async function* ({ recursionDepth }) {
    requests.push(recursionDepth)
    yield* []
  })
  for (const flags of [[], ['-d', '0'], ['-d', '1'], ['-d', '-1']])
    expect(await talosctl([method], ['usage', '/x', ...flags])).toEqual({ code: 0, stdout: '', stderr: '' })
  expect(requests).toEqual([2, 1, 2, 0])
})

test('a path that cannot be measured is an error, and nothing goes to stdout', async () => {
  const method = serverStream('machine.MachineService/DiskUsage', readers, async function* () {
    yield { name: '/x', relativeName: '/x', error: 'measure "/x": no such file or directory' }
  })
  expect(await talosctl([method], ['usage', '/x'])).toEqual({
    code: 1,
    stdout: '',
    stderr: '1 error occurred:\n\t* 10.6.0.2: measure "/x": no such file or directory\n',
  })
})

test('disk usage is shown in bytes', async () => {
  const infos = rows('usage').map(({ SIZE, NAME }) => ({ size: Number(SIZE), relativeName: NAME }))
  await expectRecorded('usage', [
    serverStream('machine.MachineService/DiskUsage', readers, async function* () {
      yield* infos
    }),
  ])
})

test('disk usage is shown for people, with the flags passed on', async () => {
  const unit: Record<string, number> = { B: 1, kB: 1e3, MB: 1e6 }
  const infos = rows('usage-a').map(({ SIZE = '', NAME }) => {
    const [number, name = 'B'] = SIZE.split(' ')
    return { size: Math.round(Number(number) * (unit[name] ?? 1)), relativeName: NAME }
  })
  const method = serverStream('machine.MachineService/DiskUsage', readers, async function* (request) {
    expect(request).toEqual({ recursionDepth: 3, all: true, threshold: 0, paths: ['/var/lib'] })
    yield* infos
  })
  await expectRecorded('usage-a', [method])
})

test('listening sockets are shown, datagram ones without a state', async () => {
  const connectrecord = rows('netstat-l').map((row) => {
    const split = (address = '') =>
      [address.slice(0, address.lastIndexOf(':')), Number(address.slice(address.lastIndexOf(':') + 1)) || 0] as const
    const [localip, localport] = split(row['Local Address'])
    const [remoteip, remoteport] = split(row['Foreign Address'])
    return { l4proto: row.Proto, localip, localport, remoteip, remoteport, state: row.State === 'LISTEN' ? 10 : 7 }
  })
  const method = unary('machine.MachineService/Netstat', readers, (request) => {
    expect(request).toMatchObject({ filter: 2, l4proto: { tcp: true, tcp6: true, udp: true, udp6: true, raw: false } })
    return { messages: [{ connectrecord }] }
  })
  await expectRecorded('netstat-l', [method])
})

test('what a table shows is available as json and yaml, with the values as the node gave them', async () => {
  const stats = [{ namespace: 'system', id: 'apid', podId: 'apid', memoryUsage: 34_100_000, cpuUsage: 45_125_018_125 }]
  const method = unary('machine.MachineService/Stats', readers, () => ({ messages: [{ stats }] }))
  const wanted = [{ node: '10.6.0.2', stats: [{ ...stats[0], name: '' }] }]
  expect(JSON.parse((await talosctl([method], ['stats', '-o', 'json'])).stdout)).toEqual(wanted)
  expect(Bun.YAML.parse((await talosctl([method], ['stats', '-o', 'yaml'])).stdout)).toEqual(wanted)
  const list = unary('machine.MachineService/ServiceList', readers, () => ({ messages: [{ services }] }))
  const [apid] = JSON.parse((await talosctl([list], ['service', 'apid', '-o', 'json'])).stdout)
  expect(apid).toMatchObject({ node: '10.6.0.2', id: 'apid', events: { events: [{ ts: '2026-11-21T09:45:38Z' }] } })
})
