import { describe, expect, test } from 'bun:test'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { inflateRawSync } from 'node:zlib'
import fc from 'fast-check'
import { ZipWriter } from '../../../../../src/programs/talosctl/archive/zip-writer.ts'
import { redact } from '../../../../../src/programs/talosctl/support/redact.ts'
import { serverStream, unary } from '../../../../../src/rpc/server/method.ts'
import { runs } from '../../../../support/runs.ts'
import { node, talosctl } from '../../peer.ts'
import { sampleMethods } from '../../sample-methods.ts'

/** The files of a zip archive by its table of contents, each checked. */
function unzip(bytes: Buffer): Map<string, string> {
  const end = bytes.length - 22
  expect(bytes.readUInt32LE(end)).toBe(0x06054b50)
  const found = new Map<string, string>()
  let at = bytes.readUInt32LE(end + 16)
  for (let left = bytes.readUInt16LE(end + 10); left > 0; left--) {
    expect(bytes.readUInt32LE(at)).toBe(0x02014b50)
    const [crc, packed, size, name, offset] = [16, 20, 24, 28, 42].map((place) =>
      place === 28 ? bytes.readUInt16LE(at + place) : bytes.readUInt32LE(at + place),
    ) as [number, number, number, number, number]
    expect(bytes.readUInt32LE(offset)).toBe(0x04034b50)
    const start = offset + 30 + bytes.readUInt16LE(offset + 26)
    const content = inflateRawSync(bytes.subarray(start, start + packed))
    expect([content.length, Bun.hash.crc32(content)]).toEqual([size, crc])
    found.set(bytes.subarray(at + 46, at + 46 + name).toString(), content.toString())
    at += 46 + name
  }
  expect(at).toBe(end)
  return found
}

test('a zip archive holds what was added, from many hands at once', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'ichor-zip-'))
  await fc.assert(
    fc.asyncProperty(
      fc.uniqueArray(fc.tuple(fc.string({ minLength: 1, maxLength: 20, unit: 'grapheme' }), fc.string()), { selector: ([name]) => name }),
      async (files) => {
        const zip = await ZipWriter.create(join(folder, 'x.zip'))
        await Promise.all(files.map(([name, content]) => zip.add(name, content, new Date('2026-11-21T12:34:56Z'))))
        await zip.end()
        expect(unzip(readFileSync(join(folder, 'x.zip')))).toEqual(new Map(files))
      },
    ),
    { numRuns: runs(30) },
  )
  rmSync(folder, { recursive: true })
})

describe('secrets are taken out', () => {
  const pem = `-----BEGIN ED25519 PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIE\n-----END ED25519 PRIVATE KEY-----`
  test.each([
    ['token: abcdef.0123456789abcdef', 'token: **REDACTED**'],
    ['machine:\n  token: plain\n  type: worker', 'machine:\n  token: **REDACTED**\n  type: worker'],
    ['ca:\n  crt: public\n  key: c2VjcmV0', 'ca:\n  crt: public\n  key: **REDACTED**'],
    ['crt: LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1JSUJ', 'crt: **REDACTED**'],
    [`log: ${pem} end`, 'log: -----BEGIN ED25519 PRIVATE KEY-----\n**REDACTED**\n-----END ED25519 PRIVATE KEY----- end'],
    ['Authorization: Bearer abc.def', 'Authorization: Bearer **REDACTED**'],
    ['proxy http://user:pass@host/', 'proxy http://user:**REDACTED**@host/'],
    ['"secret": "a\\"b", "name": "c"', '"secret": "**REDACTED**", "name": "c"'],
    ['jwt eyJhbGciOiJI.eyJzdWIiOiIx.SflKxw', 'jwt **REDACTED**'],
    ['key: |\n  line one\n  line two\nnext: 1', 'key: **REDACTED**\nnext: 1'],
    [
      'aescbcEncryptionSecret: x\nsecretboxEncryptionSecret: y',
      'aescbcEncryptionSecret: **REDACTED**\nsecretboxEncryptionSecret: **REDACTED**',
    ],
    ['key: ""\ntoken: {}', 'key: ""\ntoken: {}'],
    ['keys:\n  - a\nmonkey: b', 'keys:\n  - a\nmonkey: b'],
  ])('%j', (text, expected) => {
    expect(redact(text)).toBe(expected)
    expect(redact(redact(text))).toBe(expected)
  })
})

const list = (spec: string) =>
  serverStream('cosi.resource.State/List', ['os:admin'], async function* ({ type }) {
    const metadata = { namespace: 'meta', type, id: 'addresses.net.talos.dev', version: '1', phase: 'running' }
    if (type.startsWith('ResourceDefinitions')) {
      yield { resource: { metadata, spec: { yamlSpec: 'type: Addresses.net.talos.dev\ndefaultNamespace: network\n' } } }
      const secret = { ...metadata, id: 'roots.secrets.talos.dev' }
      yield { resource: { metadata: secret, spec: { yamlSpec: 'type: Roots.secrets.talos.dev\nsensitivity: sensitive\n' } } }
    } else yield { resource: { metadata: { ...metadata, id: 'one' }, spec: { yamlSpec: spec } } }
  })
const log = Buffer.from('started\ntoken: topsecret\n')
const methods = [
  unary('machine.MachineService/Version', ['os:admin'], () => ({ messages: [{ version: { tag: 'v1.13.0' } }] })),
  unary('machine.MachineService/LogsContainers', ['os:admin'], () => ({ messages: [{ ids: ['apid', 'kubelet'] }] })),
  serverStream('machine.MachineService/Logs', ['os:admin'], async function* ({ id }) {
    yield { bytes: log }
    if (id === 'kubelet') throw new Error('went away')
  }),
  list('address: 10.5.0.2\npassword: topsecret\n'),
]

test('a bundle holds what each node gives, without secrets, and lists what it could not get', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'ichor-support-'))
  const path = join(folder, 'bundle.zip')
  const { code, stdout, stderr } = await talosctl(methods, ['support', '-O', path, '-w', '4'])
  expect([code, stdout]).toEqual([0, ''])
  expect(stderr).toMatch(/^ {3,}SOURCE +ERROR$/m)
  expect(stderr).toMatch(new RegExp(`^${node.replaceAll('.', '\\.')} +service-logs/kubelet.log +.*went away`, 'm'))
  expect(stderr).toMatch(/^10\.6\.0\.2 +memory\.json +.*Unimplemented/m)
  expect(readdirSync(folder)).toEqual(['bundle.zip'])
  const files = unzip(readFileSync(path))
  expect(files.get(`${node}/service-logs/apid.log`)).toBe('started\ntoken: **REDACTED**\n')
  expect(files.get(`${node}/resources/addresses.net.talos.dev.yaml`)).toContain('address: 10.5.0.2\n    password: **REDACTED**\n')
  expect([...files.keys()].filter((name) => name.includes('roots'))).toEqual([])
  expect(files.get(`${node}/version.json`)).toContain('"tag": "v1.13.0"')
  expect(files.get('summary.txt')).toContain('service-logs/kubelet.log')
  expect([...files.values()].join('')).not.toContain('topsecret')
  rmSync(folder, { recursive: true })
})

test('a complete bundle is made without a word on stderr where that is no terminal', async () => {
  const kubernetes = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => Response.json({ metadata: {}, items: [] }) })
  const kubeconfig = `apiVersion: v1
kind: Config
clusters: [{ name: c, cluster: { server: "http://127.0.0.1:${kubernetes.port}", certificate-authority-data: eA== } }]
users: [{ name: admin, user: { token: x } }]
contexts: [{ name: admin, context: { cluster: c, user: admin } }]
current-context: admin
`
  const own = [
    unary('inspect.InspectService/ControllerRuntimeDependencies', ['os:admin'], () => ({ messages: [{ edges: [] }] })),
    unary('ichor.v1.ExplainService/Explain', ['os:admin'], () => ({ messages: [{}] })),
    unary('ichor.v1.MetricsService/Metrics', ['os:admin'], () => ({ messages: [{ text: 'up 1\n' }] })),
    serverStream('machine.MachineService/Kubeconfig', ['os:admin'], async function* () {
      yield { bytes: Buffer.from(kubeconfig) }
    }),
    list('address: 10.5.0.2\n'),
  ]
  const replaced = new Set<string>(own.map(({ path }) => path))
  const folder = mkdtempSync(join(tmpdir(), 'ichor-support-'))
  const path = join(folder, 'bundle.zip')
  const all = [...sampleMethods().filter((method) => !replaced.has(method.path)), ...own]
  expect(await talosctl(all, ['support', '-O', path])).toEqual({ code: 0, stdout: '', stderr: '' })
  expect(unzip(readFileSync(path)).get('summary.txt')).toContain('everything was got')
  kubernetes.stop(true)
  rmSync(folder, { recursive: true })
})

test('a file that cannot be created is reported before any request', async () => {
  const { code, stderr } = await talosctl([], ['support', '-O', '/no/such/folder/x.zip'])
  expect([code, stderr]).toEqual([1, 'create "/no/such/folder/x.zip.part": ENOENT\n'])
})
