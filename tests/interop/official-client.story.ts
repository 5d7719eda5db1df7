/** The field's own Go client against our gateway and resource API: what it decodes is what we meant. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import * as v from 'valibot'
import { parse } from 'yaml'
import { silent } from '../../src/cosi/log.ts'
import type { ResourceType } from '../../src/cosi/resource.ts'
import { Store } from '../../src/cosi/store.ts'
import * as files from '../../src/linux/fs/files.ts'
import { MachineConfig } from '../../src/os/config/resources/machine-config.ts'
import { netstat } from '../../src/os/network/api/netstat.ts'
import { newCA } from '../../src/pki/certificate.ts'
import { Gateway } from '../../src/programs/apid/gateway.ts'
import { shownSpec, yamlText } from '../../src/rpc/resource-yaml.ts'
import { readers, serverStream, unary } from '../../src/rpc/server/method.ts'
import { roleAccess } from '../../src/rpc/server/resource-access.ts'
import { type Server, serveUnix } from '../../src/rpc/server/server.ts'
import { stateMethods } from '../../src/rpc/server/state.ts'
import { authority, clientCertificate, identityOf } from '../programs/apid/nodes.ts'
import { freePort } from '../support/free-port.ts'
import { buildClient, runClient, talosconfig } from './client.ts'
import { sampleSpec } from './samples.ts'

setDefaultTimeout(300_000)

const folder = mkdtempSync(join(tmpdir(), 'ichor-interop-'))
const table = (await Bun.file(`${import.meta.dir}/../proto/contract/resource-spec-yaml.tsv`).text()).split('\n').slice(1)
const kinds = [...new Set(table.map((line) => line.split('\t')[0]!).filter((kind) => kind !== ''))]
/** Their specs have no message: clients see the YAML only. */
const withoutMessage = new Set(['DNSUpstreams.net.talos.dev'])

const store = new Store()
let backend: Server
let gateway: Gateway
let program: string
let admin: string
let reader: string

beforeAll(async () => {
  for (const type of kinds) {
    const declared: ResourceType = {
      type,
      namespace: 'test',
      displayType: '',
      aliases: [],
      automaticAliases: false,
      initials: false,
      sensitive: type === MachineConfig.type,
      ...(type === MachineConfig.type && { annotations: MachineConfig.annotations }),
      columns: {},
      schema: v.unknown(),
    }
    store.register(declared)
    if (type === 'Namespaces.meta.cosi.dev') store.create(declared, 'test', { description: '' })
    store.create(declared, 'full', sampleSpec(type), { owner: 'test.Controller', labels: { a: 'b' } })
  }
  const methods = [
    unary('machine.MachineService/Version', readers, () => ({
      messages: [{ version: { tag: 'v1.13.0', os: 'linux', arch: 'amd64' }, platform: { name: 'container' } }],
    })),
    unary('machine.MachineService/ServiceList', readers, () => ({
      messages: [
        {
          services: [
            {
              id: 'apid',
              state: 'Running',
              events: { events: [{ msg: 'Started', state: 'Running', ts: { seconds: 1, nanos: 5 } }] },
              health: { healthy: true },
            },
          ],
        },
      ],
    })),
    unary('machine.MachineService/Reboot', ['os:admin'], () => ({ messages: [{ actorId: 'x' }] })),
    serverStream('machine.MachineService/Logs', readers, async function* ({ id }) {
      yield { bytes: Buffer.from(`${id}:\n`) }
      yield { bytes: Buffer.from('hello\n') }
    }),
    netstat({ files }, async () => []),
    ...stateMethods(roleAccess),
  ]
  const socket = join(folder, 'machine.sock')
  backend = await serveUnix({ path: socket }, { methods, store, log: silent })
  const port = await freePort()
  gateway = new Gateway({ host: '127.0.0.1', port, backend: socket, remotePort: port, log: silent })
  await gateway.become(identityOf('127.0.0.1', 'controlplane'))
  program = await buildClient()
  admin = talosconfig(folder, authority.crt, clientCertificate(['os:admin']))
  reader = talosconfig(folder, authority.crt, clientCertificate(['os:reader']))
})
afterAll(async () => {
  await gateway?.close()
  await backend?.close()
  rmSync(folder, { recursive: true })
})

const run = (config: string | undefined, ...args: string[]) =>
  runClient(program, [...(config ? ['-talosconfig', config] : []), '-endpoint', `127.0.0.1:${gateway.port}`, ...args])

interface Entry {
  id: string
  version: string
  owner: string
  labels: Record<string, string>
  annotations: Record<string, string>
  spec: string
}

describe('the official client', () => {
  test('gets the version, here, from a named node and from several', async () => {
    const version = { tag: 'v1.13.0', os: 'linux', arch: 'amd64' }
    expect(await run(admin, 'version')).toMatchObject({ messages: [{ version }] })
    expect(await run(admin, '-node', '127.0.0.1', 'version')).toMatchObject({ messages: [{ version }] })
    expect(await run(admin, '-nodes', '127.0.0.1,127.0.0.1', 'version')).toMatchObject({
      messages: [
        { metadata: { hostname: '127.0.0.1' }, version },
        { metadata: { hostname: '127.0.0.1' }, version },
      ],
    })
  })

  test('lists services', async () => {
    expect(await run(reader, 'services')).toMatchObject({
      messages: [{ services: [{ id: 'apid', state: 'Running', health: { healthy: true } }] }],
    })
  })

  test('reads logs', async () => {
    expect(await run(reader, 'logs', 'apid')).toBe('apid:\nhello\n')
  })

  test('decodes every kind of resource as it was meant', async () => {
    const listed = (await run(admin, 'list', 'test', ...kinds.filter((kind) => !withoutMessage.has(kind)))) as Record<string, Entry[]>
    const differing: Record<string, unknown> = {}
    for (const [kind, entries] of Object.entries(listed)) {
      const { id, version, owner, labels, spec } = entries.find((entry) => entry.id !== 'test')!
      if (id === 'error') differing[kind] = spec
      else
        expect({ kind, id, version, owner, labels }).toEqual({
          kind,
          id: 'full',
          version: '1',
          owner: 'test.Controller',
          labels: { a: 'b' },
        })
      const seen = id === 'error' ? undefined : parse(spec)
      const meant = parse(yamlText(shownSpec(kind, sampleSpec(kind))))
      if (id !== 'error' && !Bun.deepEquals(seen, meant))
        for (const key of Object.keys({ ...meant, ...seen }))
          if (!Bun.deepEquals(seen[key], meant[key])) differing[`${kind} ${key}`] = { seen: seen[key], meant: meant[key] }
    }
    expect(differing).toEqual({})
  })

  test('finds the machine configuration marked as one string of YAML, which is how patches and editors take it', async () => {
    const { annotations, spec } = (await run(admin, 'get', 'test', MachineConfig.type, 'full')) as Entry
    expect([annotations, typeof parse(spec)]).toEqual([{ 'talos.dev/yaml-spec': '1' }, 'string'])
  })

  test('finds the process of every socket, if only as an empty message', async () => {
    for (const pid of [false, true]) {
      const [reply] = (await run(
        reader,
        'call',
        'machine.MachineService/Netstat',
        JSON.stringify({ filter: 'ALL', feature: { pid } }),
      )) as {
        messages: { connectrecord: object[] }[]
      }[]
      const records = reply!.messages[0]!.connectrecord
      expect(records.length).toBeGreaterThan(0)
      expect(records.filter((record) => !('process' in record))).toEqual([])
    }
  })

  test('watches resources', async () => {
    expect(await run(reader, 'watch', 'test', 'HostnameStatuses.net.talos.dev', '2')).toEqual(['Created full', 'Bootstrapped'])
  })

  test('is denied what it may not do', async () => {
    expect(await run(reader, 'reboot')).toEqual({ code: 'PermissionDenied', message: 'not authorized' })
    expect(await run(reader, 'get', 'test', 'MachineConfigs.config.talos.dev', 'full')).toMatchObject({ code: 'PermissionDenied' })
    expect(await run(admin, 'get', 'test', 'HostnameStatuses.net.talos.dev', 'nowhere')).toMatchObject({
      message: expect.stringContaining('does not exist'),
    })
  })

  test('is refused with a certificate of another authority of the same name, and with an expired one', async () => {
    const twin = newCA({ subject: { organizations: ['talos'] }, kind: 'ed25519' })
    const stranger = talosconfig(folder, authority.crt, clientCertificate(['os:admin'], { ca: twin }))
    const late = talosconfig(folder, authority.crt, clientCertificate(['os:admin'], { now: new Date(Date.now() - 3 * 86_400_000) }))
    const wrong = talosconfig(folder, authority.crt, clientCertificate(['os:admin'], { usage: ['clientAuth', 'serverAuth'] }))
    // The alert with the reason, every time: never a reset.
    const refused: [string, string][] = [
      [stranger, 'tls: unknown certificate authority'],
      [late, 'tls: expired certificate'],
      [wrong, 'tls: bad certificate'],
    ]
    for (const [config, why] of refused)
      for (let n = 0; n < 10; n++)
        expect(await run(config, '-timeout', '10s', 'version')).toMatchObject({
          code: 'Unavailable',
          message: expect.stringContaining(why),
        })
  })

  test('does not trust a gateway of another authority', async () => {
    const twin = newCA({ subject: { organizations: ['talos'] }, kind: 'ed25519' })
    expect(await run(talosconfig(folder, twin.crt, clientCertificate(['os:admin'])), '-timeout', '10s', 'version')).toMatchObject({
      code: 'Unavailable',
    })
  })
})
