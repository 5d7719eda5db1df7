/**
 * The field's own talosctl and ours, word for word, against one gateway with the methods of a real machine behind it. No
 * cluster is needed, but building the field's takes minutes: `bun tests/interop/all.ts` runs this.
 */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parse } from 'yaml'
import { silent } from '../../../src/cosi/log.ts'
import { describe as describeTypes } from '../../../src/cosi/meta.ts'
import { Store } from '../../../src/cosi/store.ts'
import * as kernelFiles from '../../../src/linux/fs/files.ts'
import * as xattr from '../../../src/linux/fs/xattr.ts'
import { resources as clusterResources } from '../../../src/os/cluster/resource-types.ts'
import { Member } from '../../../src/os/cluster/resources/member.ts'
import { MachineConfig } from '../../../src/os/config/resources/machine-config.ts'
import { listMethods } from '../../../src/os/files/api/list.ts'
import { readMethods } from '../../../src/os/files/api/read.ts'
import { netstat } from '../../../src/os/network/api/netstat.ts'
import { Gateway } from '../../../src/programs/apid/gateway.ts'
import { release } from '../../../src/release.ts'
import { type Method, readers, unary } from '../../../src/rpc/server/method.ts'
import { roleAccess } from '../../../src/rpc/server/resource-access.ts'
import { type Server, serveUnix } from '../../../src/rpc/server/server.ts'
import { stateMethods } from '../../../src/rpc/server/state.ts'
import { authority, clientCertificate, identityOf } from '../../programs/apid/nodes.ts'
import type { Outcome } from '../../programs/talosctl/peer.ts'
import { sampleMethods } from '../../programs/talosctl/sample-methods.ts'
import { finished } from '../../support/command-result.ts'
import { freePort } from '../../support/free-port.ts'
import { buildTalosctl, talosconfig } from '../client.ts'

setDefaultTimeout(300_000)

const repository = join(import.meta.dir, '../../..')
const node = '127.0.0.1'
const folder = mkdtempSync(join(tmpdir(), 'ichor-field-'))
const tree = join(folder, 'tree')
const configuration = 'version: v1alpha1\nmachine:\n    type: worker # of two\n    nodeLabels:\n        a: "1"\n'
const applied: { data: string; mode: number }[] = []
let program: string
let backend: Server
let gateway: Gateway
let admin: string

function machine(): { methods: Method[]; store: Store } {
  const store = new Store()
  describeTypes(store, [...clusterResources, MachineConfig], { cluster: '', meta: '', config: '' })
  store.create(MachineConfig, 'v1alpha1', configuration)
  const member = { nodeId: 'id', addresses: [node], hostname: 'one', machineType: 'worker' as const, operatingSystem: 'Ichor' }
  store.create(Member, 'one', member, { owner: 'cluster.MemberController' })
  // A file without rights is one that a machine cannot read: the tests are root, which may read all.
  const files = {
    ...kernelFiles,
    openRead: ((path, options) => {
      if (path.endsWith('/locked')) throw new Error('input/output error')
      return kernelFiles.openRead(path, options)
    }) as typeof kernelFiles.openRead,
  }
  const { tag } = release
  const real = [
    unary('machine.MachineService/Version', readers, () => ({
      messages: [{ version: { tag, sha: 'a', os: 'linux', arch: 'amd64' }, platform: { name: 'container' }, features: { rbac: true } }],
    })),
    unary('machine.MachineService/ApplyConfiguration', ['os:admin'], ({ data, mode }) => {
      applied.push({ data: Buffer.from(data).toString(), mode })
      return { messages: [{ modeDetails: 'Applied configuration without a reboot' }] }
    }),
    unary('machine.MachineService/EtcdAlarmList', readers, () => ({ messages: [{ memberAlarms: [] }] })),
    ...listMethods({ files, xattr }),
    ...readMethods({ kernel: { files }, log: silent } as never),
    netstat({ files }, async () => []),
    ...stateMethods(roleAccess),
  ]
  const known = new Set<string>(real.map(({ path }) => path))
  return { methods: [...real, ...sampleMethods().filter(({ path }) => !known.has(path))], store }
}

beforeAll(async () => {
  program = await buildTalosctl()
  mkdirSync(join(tree, 'sub/deep'), { recursive: true })
  writeFileSync(join(tree, 'file'), 'x'.repeat(3000))
  writeFileSync(join(tree, 'sub/other'), 'other\n')
  writeFileSync(join(tree, 'sub/deep/last'), 'last\n')
  symlinkSync('sub', join(tree, 'link'))
  symlinkSync('file', join(tree, 'alias'))
  mkdirSync(join(folder, 'broken'))
  writeFileSync(join(folder, 'broken/locked'), 'x')
  writeFileSync(join(folder, 'broken/open'), 'open\n')
  const socket = join(folder, 'machine.sock')
  const { methods, store } = machine()
  backend = await serveUnix({ path: socket }, { methods, store, log: silent })
  const port = await freePort()
  gateway = new Gateway({ host: node, port, backend: socket, remotePort: port, log: silent })
  await gateway.become(identityOf(node, 'controlplane'))
  admin = talosconfig(folder, authority.crt, clientCertificate(['os:admin']))
}, 900_000)
afterAll(async () => {
  await gateway?.close()
  await backend?.close()
  rmSync(folder, { recursive: true })
})

async function spawned(words: readonly string[], { on, config = admin, editor }: Where): Promise<Outcome> {
  const flags = on === '' ? [] : ['--talosconfig', config, '--endpoints', `${node}:${gateway.port}`, '--nodes', on]
  const env = {
    ...process.env,
    HOME: folder,
    TALOSCONFIG: config,
    KUBECONFIG: join(folder, 'kubeconfig'),
    ...(editor && { EDITOR: editor }),
  }
  const child = Bun.spawn([...words, ...flags], { cwd: folder, env, stdin: 'ignore', stdout: 'pipe', stderr: 'pipe' })
  return finished(child)
}

interface Where {
  /** The nodes that are called; none for commands that call no node. */
  on: string
  config?: string
  editor?: string
}

/** The field's client, which neither crashes on what we answer nor finds us older than itself. */
async function field(words: readonly string[], where: Partial<Where> = {}): Promise<Outcome> {
  const outcome = await spawned([program, ...words], { on: node, ...where })
  expect(outcome.stderr).not.toMatch(/goroutine|older than client/)
  return outcome
}

const entry = 'import { main } from "./src/programs/talosctl/talosctl.ts"; process.exit(await main(process.argv.slice(1)))'
const ours = (words: readonly string[], where: Partial<Where> = {}) =>
  spawned([process.execPath, '--cwd', repository, '-e', entry, '--', ...words], { on: node, ...where })

describe('the machine configuration', () => {
  test('is patched', async () => {
    const { code, stdout, stderr } = await field(['patch', 'mc', '--mode', 'no-reboot', '--patch', '{"machine":{"nodeLabels":{"b":"2"}}}'])
    expect([code, stdout]).toEqual([0, ''])
    expect(stderr).toContain(`patched MachineConfigs.config.talos.dev/v1alpha1 at the node ${node}`)
    const { data, mode } = applied.pop()!
    expect([parse(data).machine.nodeLabels, mode]).toEqual([{ a: '1', b: '2' }, 2])
  })

  test('is edited, and comes to the editor as it is', async () => {
    const editor = join(folder, 'editor')
    writeFileSync(editor, '#!/bin/sh\nsed -i \'s/a: "1"/a: "3"/\' "$1"\n')
    chmodSync(editor, 0o755)
    expect((await field(['edit', 'mc', '--mode', 'no-reboot'], { editor })).code).toBe(0)
    expect(applied.pop()!.data.trimEnd()).toEndWith(configuration.replace('"1"', '"3"').trimEnd())
  })
})

describe('sockets', () => {
  test('are listed with and without their programs, and with their pods', async () => {
    for (const flags of [['-l'], ['-a'], ['-l', '-p'], ['-a', '-x', '-o'], ['-a', '-k']]) {
      const { code, stdout, stderr } = await field(['netstat', '-t', ...flags])
      expect([code, stderr, stdout.split('\n')[0]]).toEqual([0, '', expect.stringMatching(/^NODE +Proto/)])
    }
    expect((await field(['netstat', '-l', '-t', '-p'])).stdout).toMatch(new RegExp(`:${gateway.port} .* ${process.pid}/`))
  })
})

describe('files', () => {
  test('of a folder are copied, links and all', async () => {
    const target = join(folder, 'copied')
    expect(await field(['copy', tree, target])).toEqual({ code: 0, stdout: '', stderr: '' })
    expect(readdirSync(target, { recursive: true }).toSorted()).toEqual(readdirSync(tree, { recursive: true }).toSorted())
    expect(readFileSync(join(target, 'sub/deep/last'), 'utf8')).toBe('last\n')
  })

  test('that cannot be read are an error behind the archive of the others', async () => {
    const missing = expect.stringContaining(`skipping "${join(folder, 'broken/locked')}": input/output error`)
    for (const run of [field, ours]) {
      const { code, stderr } = await run(['copy', join(folder, 'broken'), '-'])
      expect([run.name, code, stderr]).toEqual([run.name, 1, missing])
    }
    // The field's client reads no further than the end of the archive here, and so does not see the error.
    for (const [name, run] of Object.entries({ field, ours })) {
      const target = join(folder, `half-${name}`)
      const { code, stderr } = await run(['copy', join(folder, 'broken'), target])
      expect(readFileSync(join(target, 'open'), 'utf8')).toBe('open\n')
      if (run === ours) expect([code, stderr]).toEqual([1, missing])
    }
  })

  test('of several nodes are refused', async () => {
    for (const words of [
      ['read', '/etc/hosts'],
      ['copy', '/etc/hosts', '-'],
      ['kubeconfig', '-'],
    ])
      for (const run of [field, ours])
        expect(await run(words, { on: `${node},127.0.0.2` })).toEqual({
          code: 1,
          stdout: '',
          stderr: expect.stringContaining(' is not supported with multiple nodes'),
        })
  })
})

describe('both print the same:', () => {
  const same: readonly (readonly string[])[] = [
    ['list', join(tree, 'file')],
    ['list', join(tree, 'alias')],
    ['list', join(tree, 'link')],
    ['list', tree],
    ['list', '-l', tree],
    ['list', '-d', '0', tree],
    ['list', '-d', '2', tree],
    ['list', '-r', tree],
    ['list', '-r', '-t', 'l', tree],
    ['usage', tree],
    ['usage', '-d', '0', tree],
    ['usage', '-d', '2', tree],
    ['usage', '-a', '-H', '-d', '3', tree],
    ['usage', '-d', '2', '-t', '4090', tree],
    ['usage', '/no/such'],
    ['read', join(tree, 'file')],
    ['read', '/no/such'],
    ['memory', '-v'],
    ['mounts'],
    ['containers'],
    ['stats'],
    ['services'],
    ['service', 'apid', 'restart'],
    ['processes'],
    ['time'],
    ['logs', 'apid'],
    ['etcd', 'members'],
    ['etcd', 'status'],
    ['etcd', 'alarm', 'list'],
    ['etcd', 'alarm', 'disarm'],
    ['etcd', 'downgrade', 'validate', '3.5'],
    ['get', 'members'],
    ['get', 'members', '-o', 'yaml'],
    ['get', 'members', '-o', 'json'],
    ['get', 'members', '-o', 'jsonpath={.spec}'],
    ['get', 'members', '-o', 'jsonpath={.metadata.version}'],
    ['get', 'members', '-o', 'jsonpath={.metadata.id} {"x"}'],
    ['get', 'members', '-o', 'jsonpath={.metadata}'],
    ['get', 'members', '-o', 'jsonpath={.metadata.created}'],
    ['get', 'members', '-o', 'jsonpath={.spec.addresses[0]}'],
    ['get', 'members', '-o', 'jsonpath={.spec.missing}'],
    ['get', 'mc', '-o', 'yaml'],
    ['get', 'mc', '-o', 'json'],
    ['get', 'mc', '-o', 'jsonpath={.spec}'],
    ['get', 'mc', '-o', 'jsonpath={.metadata.annotations}'],
    ['get', 'members', 'nowhere'],
    ['get', 'rd'],
    ['meta', 'write', '0x0a', 'x'],
    ['meta', 'delete', '0x0a'],
    ['wipe', 'disk', 'sda'],
    ['restart', 'apid'],
    ['bootstrap'],
    ['etcd', 'forfeit-leadership'],
    ['etcd', 'remove-member', '1'],
    ['config', 'contexts'],
    ['config', 'info'],
  ]
  test.each(same.map((words) => [words.map((word) => word.replace(folder, '…')).join(' '), words] as const))('%s', async (_, words) => {
    const where = { on: words[0] === 'config' ? '' : node }
    const [theirs, own] = [await field(words, where), await ours(words, where)]
    // Without blanks that nobody sees behind the last column, and without the time that passed; of stderr only whether it is empty.
    const plain = ({ code, stdout, stderr }: Outcome) => ({
      code,
      stdout: stdout.replaceAll(/ +$/gm, '').replaceAll(/\d+h\d+m\d+s ago/g, '… ago'),
      silent: stderr === '',
    })
    expect(plain(own)).toEqual(plain(theirs))
  })

  test('inject serviceaccount, which takes what the other made', async () => {
    const file = join(folder, 'pod.yaml')
    writeFileSync(file, 'apiVersion: v1\nkind: Pod\nmetadata:\n  name: p\nspec:\n  containers:\n    - name: c\n      image: i\n')
    const words = ['inject', 'serviceaccount', '-f', file]
    const documents = ({ stdout }: Outcome) => stdout.split(/^---$/m).map((each) => parse(each))
    const [theirs, own] = [await field(words, { on: '' }), await ours(words, { on: '' })]
    expect(documents(own)[1]).toEqual(documents(theirs)[1])
    writeFileSync(file, own.stdout)
    expect(documents(await field(words, { on: '' })).slice(0, 2)).toEqual(documents(theirs).slice(0, 2))
    writeFileSync(file, theirs.stdout)
    expect(documents(await ours(words, { on: '' })).slice(0, 2)).toEqual(documents(theirs).slice(0, 2))
  })
})

describe('refusals', () => {
  test('of a reader are reported as such', async () => {
    const reader = talosconfig(folder, authority.crt, clientCertificate(['os:reader']))
    const { code, stderr } = await field(['get', 'mc'], { config: reader })
    expect([code, stderr]).toEqual([1, expect.stringContaining('not authorized')])
  })
})
