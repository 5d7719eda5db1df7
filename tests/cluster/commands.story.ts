/** Every command against a real cluster as in its transcript, and every method called by the official Go client. */

import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse, parseAllDocuments } from 'yaml'
import { newCSR } from '../../src/pki/request.ts'
import { unfilled } from '../interop/always-filled.ts'
import { buildClient, runClient } from '../interop/client.ts'
import { calledApart, everyMethod } from '../interop/every-method.ts'
import { buildGuest, guestArchive } from '../interop/guest.ts'
import { eventually, succeeded, TestCluster } from './cluster.ts'
import { timeServer } from './time-server.ts'
import { type Scene, scenes, squeeze } from './transcript.ts'

setDefaultTimeout(240_000)

const cluster = new TestCluster('commands')
const folder = join(import.meta.dir, '..', 'transcripts', 'node')
const hasGo = Bun.which('go') !== null
const guest = 'registry.test/guest:v1'
/** Filled in when there is a cluster. */
const values: Record<string, string> = { NAME: 'commands', HOME: cluster.home, GUEST: join(cluster.home, 'guest.tar') }
let clock: { close(): void }
// An editor that changes nothing.
cluster.env.EDITOR = 'true'

beforeAll(async () => {
  await cluster.create('--workers', '1')
  const ip = (role: string) => cluster.nodes().find((node) => node.role === role)?.ip ?? ''
  values.CP = ip('controlplane')
  values.W = ip('worker')
  values.GW = values.CP.replace(/\d+$/, '1')
  const held = succeeded(await cluster.talosctl('image', 'list')).stdout
  values.ETCD = /registry\.k8s\.io\/etcd:\S+/.exec(held)?.[0] ?? ''
  clock = await timeServer(values.GW)
  if (!hasGo) return
  buildGuest(join(cluster.home, 'guest'))
  writeFileSync(values.GUEST!, guestArchive(join(cluster.home, 'guest'), guest))
})
afterAll(async () => {
  clock?.close()
  await cluster.destroy()
  cluster.close()
})

/** Commands that ask no node. */
const local = /^((config|gen|validate|machineconfig|completion|docs|inject|cluster|help)(?![\w-])|image (k8s|cache)-)/
/** Flags with which a command names its nodes itself. */
const naming = new Set(['-n', '--nodes', '--talosconfig'])

/** Runs one command of a transcript; the first difference from it is shown. */
async function play({ line, args, code, stdout, stderr }: Scene): Promise<void> {
  const nodes = local.test(line) || args.some((arg) => naming.has(arg)) ? [] : ['-n', values.CP!]
  const output = await cluster.talosctl(...nodes, ...args)
  const seen = { line, code: output.code, stdout: squeeze(output.stdout), stderr: squeeze(output.stderr) }
  expect(seen).toEqual({ line, code, stdout: expect.stringMatching(stdout), stderr: expect.stringMatching(stderr) })
}

describe.each(readdirSync(folder).sort())('%s', (file) => {
  // Debug containers need an image that is compiled.
  const lines = readFileSync(join(folder, file), 'utf8').match(/^\$ talosctl .*$/gm) ?? []
  test.each(lines.map((line, index) => [line, index] as const))('%s', async (line, index) => {
    if (!hasGo && (line.includes('{GUEST}') || line.includes('guest'))) return
    await play(scenes(join(folder, file), values)[index]!)
  })
})

// It is written in Go.
describe.skipIf(!hasGo)('the official client', () => {
  const table = readFileSync(join(import.meta.dir, '../proto/contract/api-services.tsv'), 'utf8')
    .trim()
    .split('\n')
    .slice(1)
  const paths = table.map((row) => row.split('\t')).map(([pkg, service, method]) => `${pkg}.${service}/${method}`)
  // The order is the table's of the questions, known before there is a cluster.
  const ordered = Object.keys(everyMethod({ controlPlane: '', worker: '', name: '', image: '', archive: '', guest: '', timeServer: '' }))
  let program = ''
  let calls: ReturnType<typeof everyMethod> = {}

  const ask = (path: string, requests: readonly object[], node = values.CP!, ...flags: string[]) => {
    const files = requests.map((request) => {
      const text = JSON.stringify(request)
      if (text.length < 10_000) return text
      const file = join(cluster.home, 'request.json')
      writeFileSync(file, text)
      return `@${file}`
    })
    const who = ['-talosconfig', cluster.env.TALOSCONFIG!, '-timeout', '150s']
    return runClient(program, [...who, '-endpoint', `${values.CP}:50000`, '-node', node, ...flags, 'call', path, ...files])
  }

  beforeAll(async () => {
    program = await buildClient()
    calls = everyMethod({
      controlPlane: values.CP!,
      worker: values.W!,
      name: values.NAME!,
      image: values.ETCD!,
      archive: readFileSync(values.GUEST!).toString('base64'),
      guest,
      timeServer: values.GW!,
    })
  })

  /** Makes a call that ends a node. */
  const answered = async (path: string, request: object, node: string) => {
    const replies = await ask(path, [request], node)
    expect(replies).toMatchObject([{ messages: [{ actorId: expect.any(String) }] }])
    expect(unfilled(path, replies as unknown[])).toEqual([])
  }

  test('covers every method', () => {
    expect([...Object.keys(calls), ...calledApart].sort()).toEqual(paths.sort())
  })

  test.each(ordered)('%s', async (path) => {
    const { requests, node, limit = 0, answer } = calls[path]!
    const output = await ask(path, requests, node ? values.W! : values.CP!, '-limit', String(limit))
    expect(output).toEqual(answer)
    // A refusal is not a list.
    expect(Array.isArray(output) ? unfilled(path, output) : []).toEqual([])
  })

  test('securityapi.SecurityService/Certificate', async () => {
    const documents = succeeded(
      await cluster.talosctl('-n', values.CP!, 'get', 'machineconfig', 'v1alpha1', '-o', 'jsonpath={.spec}'),
    ).stdout
    const { token } = parseAllDocuments(documents)[0]!.toJS().machine as { token: string }
    const trustd = (given: string, commonName?: string) => {
      const { csr } = newCSR({ subject: commonName === undefined ? {} : { commonName }, sans: { ips: [values.W!] } })
      const request = JSON.stringify({ csr: Buffer.from(csr).toString('base64') })
      const call = ['call', 'securityapi.SecurityService/Certificate', request]
      return runClient(program, ['-endpoint', `${values.CP}:50001`, '-token', given, ...call])
    }
    const worker = cluster.nodes().find(({ role }) => role === 'worker')?.name ?? ''
    expect(await trustd(token, worker)).toEqual([{ ca: expect.any(String), crt: expect.any(String) }])
    // The address is the worker's: from elsewhere only one that goes by its name gets a certificate for it.
    expect(await trustd(token)).toMatchObject({ code: 'PermissionDenied' })
    expect(await trustd('wrong', worker)).toMatchObject({ code: expect.stringMatching(/PermissionDenied|Unauthenticated/) })
  })

  test('machine.MachineService/Reboot, and the node is itself again', async () => {
    const begun = async () => {
      const output = succeeded(await cluster.talosctl('-n', values.W!, 'get', 'machinestatus', '-o', 'yaml')).stdout
      const { metadata, spec } = parse(output)
      expect(spec.stage).toBe('running')
      return metadata.created as string
    }
    const before = await begun()
    await answered('machine.MachineService/Reboot', {}, values.W!)
    await eventually(async () => expect(await begun()).not.toBe(before), 120)
  })

  test('machine.MachineService/Reset and Shutdown, and the nodes are gone', async () => {
    await answered('machine.MachineService/Reset', { graceful: true, reboot: false }, values.W!)
    const gone = (node: string) =>
      eventually(async () => expect((await cluster.talosctl('-e', node, '-n', node, 'version', '--short')).code).toBe(1), 120)
    await gone(values.W!)
    await answered('machine.MachineService/Shutdown', { force: true }, values.CP!)
    await gone(values.CP!)
  })
})
