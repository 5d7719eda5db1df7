/** apid before there is a containerd, as a machine runs it: a plain process that is as confined as its container, and answers. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
} from 'node:fs'
import { join } from 'node:path'
import { silent } from '../../src/cosi/log.ts'
import { describe as describeTypes } from '../../src/cosi/meta.ts'
import { Store } from '../../src/cosi/store.ts'
import * as files from '../../src/linux/fs/files.ts'
import { mounts } from '../../src/linux/fs/mount.ts'
import { capabilities } from '../../src/linux/process/capabilities.ts'
import { removeCgroup } from '../../src/linux/process/cgroup.ts'
import { oomScoreAdjustment } from '../../src/linux/process/process.ts'
import type { Machine } from '../../src/os/area.ts'
import { namespaces } from '../../src/os/namespaces.ts'
import { NodeAddress } from '../../src/os/network/resources/node-address.ts'
import { ApidPlace } from '../../src/os/runtime/apid-place.ts'
import { APIServiceConfig } from '../../src/os/runtime/resources/api-service-config.ts'
import { apidService } from '../../src/os/runtime/services/apid.ts'
import { ApiCertificate } from '../../src/os/secrets/resources/api-certificate.ts'
import { day, newCertificate } from '../../src/pki/certificate.ts'
import { type Channel, connect } from '../../src/rpc/client/channel.ts'
import { unary } from '../../src/rpc/server/method.ts'
import { apidAccess } from '../../src/rpc/server/resource-access.ts'
import { type Server, serveUnix } from '../../src/rpc/server/server.ts'
import { stateMethods } from '../../src/rpc/server/state.ts'
import { tcpProbe } from '../../src/supervise/probe.ts'
import { type Spawn, spawn } from '../../src/supervise/spawn.ts'
import { Supervisor } from '../../src/supervise/supervisor.ts'
import { messageOf } from '../../src/wire/error-message.ts'
import { parseProcessStatus } from '../../src/wire/proc/process.ts'
import { authority } from '../programs/apid/nodes.ts'
import { cgroupsOf, namespaceOf } from './kernel-state.ts'

const root = join(import.meta.dir, '../..')
/** A copy where a process without capabilities may reach it, and which apid's view does not hide. */
const programs = mkdtempSync('/opt/ichor-apid-')
const port = 50_931
const group = `/ichor-story-${process.pid}`

const store = new Store()
/** Without CAP_SYS_RESOURCE no score below one's own can be given. */
const floor = capabilities().effective.includes('sys_resource') ? -1000 : oomScoreAdjustment()
const supervisor = new Supervisor({ store, oomFloor: floor })
const servers: Server[] = []
let channel: Channel
let pid = 0
/** The error of a connection to apid while it watched resources that did not exist yet; undefined when it was accepted. */
let problemBeforehand: string | undefined
const watched = Promise.withResolvers<void>()
let madeFolder = false

/** The programs of this checkout in place of those of a node; apid at a port that is free. */
const spawnHere: Spawn = ({ argv, env, cwd }) => {
  const here = argv.flatMap((word) => {
    if (word === '/usr/bin/exec') return [join(programs, 'exec')]
    return word === '/usr/bin/apid' ? [join(programs, 'apid'), '--listen', `127.0.0.1:${port}`] : [word]
  })
  return spawn({ argv: here, env, ...(cwd !== undefined && { cwd }) })
}

beforeAll(async () => {
  chmodSync(programs, 0o755)
  copyFileSync(join(root, 'dist/ichor'), join(programs, 'ichor'))
  for (const name of ['exec', 'apid']) symlinkSync('ichor', join(programs, name))
  madeFolder = !existsSync('/system')
  for (const folder of ['/system/run/apid', '/system/run/machined', '/system/state']) mkdirSync(folder, { recursive: true })
  const base64 = (text: string) => Buffer.from(text).toString('base64')
  const server = newCertificate({
    ca: authority,
    subject: { commonName: 'x' },
    sans: { ips: ['127.0.0.1'] },
    usage: ['serverAuth'],
    lifetime: day,
  })
  describeTypes(store, [ApiCertificate, APIServiceConfig, NodeAddress], namespaces)
  const hostname = unary('machine.MachineService/Hostname', 'anyone', () => ({ messages: [{ hostname: 'confined' }] }))
  const owner = { mode: 0o600, uid: 50, gid: 50 }
  servers.push(
    await serveUnix({ path: '/system/run/machined/machine.sock', ...owner }, { methods: [hostname], store, log: silent }),
    await serveUnix(
      { path: '/system/run/apid/runtime.sock', ...owner },
      { methods: stateMethods(apidAccess, 'anyone').map((method) => ({ ...method, admit: () => watched.resolve() })), store, log: silent },
    ),
  )
  const machine = {
    kernel: { mode: 'metal', files },
    spawn: spawnHere,
    supervisor,
    apidPlace: new ApidPlace(supervisor, silent),
  } as unknown as Machine
  const { health: _, ...definition } = apidService(machine)
  supervisor.load({ ...definition, cgroup: `${group}/apid` })
  supervisor.start('apid')
  await supervisor.until('apid', 'up')
  await watched.promise
  problemBeforehand = await tcpProbe('127.0.0.1', port)(AbortSignal.timeout(5_000)).then(() => undefined, messageOf)
  store.put(ApiCertificate, 'api', {
    acceptedCAs: [{ crt: base64(authority.crt) }],
    server: { crt: base64(server.crt), key: base64(server.key) },
    skipVerifyingClientCert: true,
  })
  store.put(APIServiceConfig, 'api', {
    listenAddress: '',
    nodeRoutingDisabled: true,
    readonlyRoleMode: false,
    skipVerifyingClientCert: true,
  })
  channel = connect({ address: `127.0.0.1:${port}`, tls: { ca: authority.crt } })
  await answers()
  pid = supervisor.get('apid')?.pid ?? 0
})

afterAll(async () => {
  channel?.close()
  await supervisor.stop('apid')
  for (const server of servers) await server.close()
  await removeCgroup(group)
  if (madeFolder) rmSync('/system', { recursive: true })
  rmSync(programs, { recursive: true })
})

/** Its reply, as soon as it listens. */
async function answers() {
  for (;;)
    try {
      return await channel.unary('machine.MachineService/Hostname', {}, { deadline: 5_000 })
    } catch (error) {
      if (!supervisor.get('apid')?.pid) throw new Error(`apid has ended: ${supervisor.logs.get('apid')}`, { cause: error })
    }
}

describe('apid as a process', () => {
  test('listens only once it is given its certificates and its address', () => {
    expect(problemBeforehand).toStartWith(`dial 127.0.0.1:${port}: `)
  })

  test('answers', async () => {
    expect(await answers()).toMatchObject({ messages: [{ hostname: 'confined' }] })
  })

  test('is another user without capabilities behind a filter of system calls', () => {
    const status = parseProcessStatus(readFileSync(`/proc/${pid}/status`, 'utf8'))
    expect(status.get('Uid')).toBe('50 50 50 50')
    expect(status.get('Gid')).toBe('50 50 50 50')
    expect(status.get('Groups')).toBe('')
    for (const set of ['CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb']) expect(status.get(set)).toBe('0000000000000000')
    expect(status.get('NoNewPrivs')).toBe('1')
    expect(status.get('Seccomp')).toBe('2')
    expect(status.get('Seccomp_filters')).toBe('1')
  })

  test('is in its control group, with its score, and with namespaces of its own', () => {
    expect(cgroupsOf(pid)).toContain(`${group}/apid`)
    expect(oomScoreAdjustment(pid)).toBe(Math.max(-998, floor))
    for (const kind of ['mnt', 'ipc', 'cgroup'] as const) expect(namespaceOf(pid, kind)).not.toBe(namespaceOf('self', kind))
    expect(namespaceOf(pid, 'net')).toBe(namespaceOf('self', 'net'))
  })

  test('sees only its sockets and the program', () => {
    const inside = (path: string) => readdirSync(`/proc/${pid}/root${path}`).sort()
    expect(inside('/system')).toEqual(['run'])
    expect(inside('/system/run')).toEqual(['apid', 'machined'])
    expect(inside('/system/run/machined')).toEqual(['machine.sock'])
    for (const folder of ['/run', '/tmp', '/var']) expect(inside(folder)).toEqual([])
    expect(inside('/dev')).toEqual(['full', 'null', 'random', 'urandom', 'zero'])
    expect(mounts(pid).filter(({ options }) => !options.includes('ro'))).toEqual([])
    expect(mounts(pid).findLast(({ target }) => target === '/proc')?.superOptions).toContain('hidepid=invisible')
  })

  test('has no descriptor but its own', () => {
    const open = readdirSync(`/proc/${pid}/fd`).map((fd) => readlinkSync(`/proc/${pid}/fd/${fd}`))
    expect(open.filter((path) => path.startsWith('/') && !path.startsWith('/dev/') && !path.startsWith(root))).toEqual([])
  })
})
