/** Commands that reach into a node: capture, wipe, META; and inject, which needs none. */
import { expect, test } from 'bun:test'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseAllDocuments } from 'yaml'
import { wipeRefused } from '../../../src/os/block/api/disks.ts'
import { refusedInContainer } from '../../../src/os/lifecycle/api/metal.ts'
import { serverStream, unary } from '../../../src/rpc/server/method.ts'
import { pcapHeader, pcapRecord } from '../../../src/wire/packet/pcap.ts'
import { talosctl } from './peer.ts'

const time = Date.parse('2026-11-21T12:00:00Z') * 1000
const arp = Buffer.from(`02000000000102000000000208060001080006040001${'020000000001'}0a050001${'000000000000'}0a050002`, 'hex')
const requests: object[] = []
const capture = serverStream('machine.MachineService/PacketCapture', ['os:admin'], async function* (request, { signal }) {
  requests.push(request)
  yield { bytes: pcapHeader(1, 4096) }
  yield { bytes: pcapRecord({ time, length: arp.length, bytes: arp }) }
  if (request.interface === 'endless')
    await new Promise<void>((resolve) => {
      signal.addEventListener('abort', () => resolve())
    })
})

test('pcap shows packets a line each, with the filter as instructions', async () => {
  const { code, stdout, stderr } = await talosctl([capture], ['pcap', '--bpf-filter', 'arp', '-i', 'eth1', '--promiscuous'])
  expect({ code, stdout, stderr }).toEqual({
    code: 0,
    stdout: '12:00:00.000000 ARP who has 10.5.0.2, tell 10.5.0.1, length 42\n',
    stderr: '',
  })
  const bpfFilter = [
    { op: 0x28, jt: 0, jf: 0, k: 12 },
    { op: 0x15, jt: 0, jf: 1, k: 0x806 },
    { op: 0x06, jt: 0, jf: 0, k: 0x40000 },
    { op: 0x06, jt: 0, jf: 0, k: 0 },
  ]
  expect(requests.at(-1)).toMatchObject({ interface: 'eth1', promiscuous: true, snapLen: 4096, bpfFilter })
})

test('pcap keeps packets in a file for others, and ends in time', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'ichor-pcap-'))
  const path = join(folder, 'x.pcap')
  const { code, stdout } = await talosctl([capture], ['tcpdump', '-i', 'endless', '--duration', '300ms', '-o', path])
  expect([code, stdout]).toEqual([0, ''])
  expect(readFileSync(path)).toEqual(Buffer.concat([pcapHeader(1, 4096), pcapRecord({ time, length: arp.length, bytes: arp })]))
  rmSync(folder, { recursive: true })
})

test.each([
  [['pcap', '--bpf-filter', 'nonsense 3'], /^filter: "nonsense" is not understood: want ip, ip6, .*\n$/],
  [['pcap', '-o', '/no/such/folder/x'], /^create "\/no\/such\/folder\/x": ENOENT\n$/],
  [['wipe', 'disk', 'a b'], /^"a b" is no name of a disk: .*\n$/],
  [['wipe', 'disk'], /missing required argument/],
  [['wipe', 'disk', 'sda', '--method', 'SLOW'], /Allowed choices are FAST, ZEROES/],
  [['meta', 'write', '256', 'x'], /want a number from 0 to 255/],
  [['meta', 'delete', 'ten'], /want a number from 0 to 255/],
])('%j is refused', async (args, message) => {
  const { code, stderr, stdout } = await talosctl([capture], args)
  expect([code, stdout]).toEqual([1, ''])
  expect(stderr).toMatch(message)
})

test('wipe and meta print the reply of a container node', async () => {
  const methods = [wipeRefused, ...refusedInContainer.filter(({ path }) => path.includes('Meta'))]
  for (const args of [
    ['wipe', 'disk', 'sda'],
    ['meta', 'write', '0x0a', 'x'],
    ['meta', 'delete', '10'],
  ]) {
    const { code, stderr } = await talosctl(methods, args)
    expect(code).toBe(1)
    expect(stderr).toMatch(/: method is not supported in container mode: [^\n]*\n$/)
  }
})

test('wipe and meta send the request of the command line', async () => {
  const seen: object[] = []
  const methods = [
    unary('storage.StorageService/BlockDeviceWipe', ['os:admin'], (request) => {
      seen.push(request)
      return { messages: [{}] }
    }),
    unary('machine.MachineService/MetaWrite', ['os:admin'], (request) => {
      seen.push({ ...request, value: Buffer.from(request.value).toString() })
      return { messages: [{}] }
    }),
  ]
  expect(await talosctl(methods, ['wipe', 'disk', '/dev/sdb', 'sdc1', '--method', 'ZEROES', '--drop-partition'])).toEqual({
    code: 0,
    stdout: '',
    stderr: '',
  })
  expect((await talosctl(methods, ['meta', 'write', '0x0a', 'text'])).code).toBe(0)
  const flags = { method: 1, skipVolumeCheck: false, skipSecondaryCheck: false, dropPartition: true }
  expect(seen).toEqual([
    {
      devices: [
        { device: 'sdb', ...flags },
        { device: 'sdc1', ...flags },
      ],
    },
    { key: 10, value: 'text' },
  ])
})

const manifest = `# our app
apiVersion: apps/v1
kind: Deployment
metadata: {name: app, namespace: tools}
spec:
  template:
    spec:
      containers:
        - name: one # the first
          image: x
          volumeMounts: [{name: data, mountPath: /data}]
      initContainers: [{name: two, image: y}]
---
kind: ConfigMap
metadata: {name: other}
`

test('inject serviceaccount gives every container of a manifest the secret, and adds the account', async () => {
  const { code, stdout } = await talosctl([], ['inject', 'tsa', '-f', '-', '--roles', 'os:reader,os:operator'], { stdin: manifest })
  expect(code).toBe(0)
  expect(stdout).toContain('# our app\n')
  expect(stdout).toContain('# the first\n')
  const [deployment, account, other, ...rest] = parseAllDocuments(stdout).map((one) => one.toJS())
  const mount = { name: 'talos-secrets', mountPath: '/var/run/secrets/talos.dev' }
  expect(deployment.spec.template.spec).toEqual({
    containers: [{ name: 'one', image: 'x', volumeMounts: [{ name: 'data', mountPath: '/data' }, mount] }],
    initContainers: [{ name: 'two', image: 'y', volumeMounts: [mount] }],
    volumes: [{ name: 'talos-secrets', secret: { secretName: 'app-talos-secrets' } }],
  })
  expect(account).toEqual({
    apiVersion: 'talos.dev/v1alpha1',
    kind: 'ServiceAccount',
    metadata: { name: 'app-talos-secrets', namespace: 'tools' },
    spec: { roles: ['os:reader', 'os:operator'] },
  })
  // Every document ends with a separator, as those of the field's client do.
  expect([other.kind, rest, stdout.match(/^---$/gm)?.length]).toEqual(['ConfigMap', [null], 3])
  expect(stdout.endsWith('\n---\n')).toBe(true)
})

test('what was injected once is not injected a second time, and its roles stay', async () => {
  const once = await talosctl([], ['inject', 'serviceaccount', '-f', '-'], { stdin: manifest })
  expect(await talosctl([], ['inject', 'serviceaccount', '-f', '-'], { stdin: once.stdout })).toEqual(once)
})

test('a manifest that makes no pods stays as it is', async () => {
  const stdin = 'apiVersion: v1\nkind: ConfigMap\n'
  expect(await talosctl([], ['inject', 'serviceaccount', '-f', '-'], { stdin })).toEqual({ code: 0, stdout: `${stdin}---\n`, stderr: '' })
})

test.each([
  [['inject', 'serviceaccount'], '', /^name the manifest with --file/],
  [['inject', 'serviceaccount', '-f', '/no/such'], '', /^read "\/no\/such": ENOENT\n$/],
  [['inject', 'serviceaccount', '-f', '-'], 'a: [1\n', /^"-": .*\n$/],
  [['inject', 'serviceaccount', '-f', '-'], 'apiVersion: v1\nkind: Pod\nspec: {}\n', /^"-": v1\/Pod without a name or without spec\n$/],
])('%j of bad input is refused in one line', async (args, stdin, message) => {
  const { code, stdout, stderr } = await talosctl([], args, { stdin })
  expect([code, stdout]).toEqual([1, ''])
  expect(stderr).toMatch(message)
})
