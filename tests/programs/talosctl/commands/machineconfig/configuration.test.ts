import { afterAll, expect, test } from 'bun:test'
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { clientStream, unary } from '../../../../../src/rpc/server/method.ts'
import { RpcError } from '../../../../../src/rpc/status.ts'
import { fingerprint, node, talosctl } from '../../peer.ts'

const admins = ['os:admin'] as const
const folder = mkdtempSync(join(tmpdir(), 'ichor-configuration-'))
afterAll(() => rmSync(folder, { recursive: true }))
const config = 'version: v1alpha1\nmachine:\n    type: worker # kept\n'
const file = join(folder, 'worker.yaml')
writeFileSync(file, config)

interface Applied {
  data: string
  mode: number
  dryRun: boolean
  seconds: number | undefined
  node: readonly string[] | undefined
}

function applying(applied: Applied[]) {
  return unary('machine.MachineService/ApplyConfiguration', admins, ({ data, mode, dryRun, tryModeTimeout }, { metadata }) => {
    applied.push({
      data: Buffer.from(data).toString(),
      mode,
      dryRun,
      seconds: tryModeTimeout?.seconds,
      node: metadata.node ?? metadata.nodes,
    })
    return {
      messages: [{ metadata: { hostname: node }, warnings: ['careful'], mode, modeDetails: 'Applied configuration without a reboot' }],
    }
  })
}

const holding = unary('cosi.resource.State/Get', admins, ({ namespace, type, id }) => {
  if (`${namespace}/${type}/${id}` !== 'config/MachineConfigs.config.talos.dev/v1alpha1') throw new RpcError('NotFound', 'no')
  return { resource: { metadata: { id }, spec: { yamlSpec: `|\n${config.replace(/^/gm, '    ').trimEnd()}\n` } } }
})

test('a configuration is applied as it is, and the reply of the node is printed', async () => {
  const applied: Applied[] = []
  const { code, stdout, stderr } = await talosctl([applying(applied)], ['apply-config', '-f', file, '--mode', 'no-reboot'])
  expect([code, stdout, stderr]).toEqual([0, '', 'WARNING: careful\nApplied configuration without a reboot\n'])
  expect(applied).toEqual([{ data: config, mode: 2, dryRun: false, seconds: 60, node: [node] }])
})

test('a configuration comes from standard input, patched, as a dry run', async () => {
  const applied: Applied[] = []
  const patch = '{"machine":{"network":{"hostname":"x"}}}'
  const { stdout } = await talosctl([applying(applied)], ['apply', '-f', '-', '-p', patch, '--dry-run'], { stdin: config })
  expect(stdout).toBe('Applied configuration without a reboot\n')
  expect(applied[0]?.dryRun).toBe(true)
  expect(applied[0]?.data).toContain('type: worker # kept')
  expect(applied[0]?.data).toContain('hostname: x')
})

test('errors of the command line are reported before anything is sent', async () => {
  expect((await talosctl([], ['apply-config'])).stderr).toContain('name the file with --file')
  expect((await talosctl([], ['apply-config', '-f', '/nope'])).stderr).toBe('read configuration "/nope": ENOENT\n')
  expect((await talosctl([], ['apply-config', '-f', file, '-p', '@/nope'])).stderr).toBe('read patch "/nope": ENOENT\n')
  expect((await talosctl([], ['apply-config', '-f', file, '--insecure'])).stderr).toBe(
    '--insecure needs to know the machine: name it with --nodes\n',
  )
  expect((await talosctl([], ['patch', 'mc'])).stderr).toBe('no patch is given: use --patch or --patch-file\n')
  expect((await talosctl([], ['patch', 'members', '-p', '{}'])).stderr).toBe(
    'resource "members" cannot be changed: only "machineconfig" can\n',
  )
})

test('the configuration of each node is patched where it is', async () => {
  const applied: Applied[] = []
  const { code, stderr } = await talosctl([applying(applied), holding], ['patch', 'mc', '-p', 'machine: {type: controlplane}'])
  expect(code).toBe(0)
  expect(stderr).toContain(`patched MachineConfigs.config.talos.dev/v1alpha1 at the node ${node}\n`)
  expect(applied.map(({ data, node: where }) => [data, where])).toEqual([
    ['version: v1alpha1\nmachine:\n    type: controlplane # kept\n', [node]],
  ])
})

test('an edit is applied, and one without a change is not', async () => {
  const applied: Applied[] = []
  const editor = join(folder, 'editor')
  writeFileSync(editor, '#!/bin/sh\nsed -i s/worker/controlplane/ "$1"\n')
  chmodSync(editor, 0o755)
  const methods = [applying(applied), holding]
  expect((await talosctl(methods, ['edit', 'machineconfig'], { env: { EDITOR: editor } })).code).toBe(0)
  expect(applied.map(({ data }) => data)).toEqual([config.replace('worker', 'controlplane')])
  const unchanged = await talosctl(methods, ['edit', 'mc'], { env: { EDITOR: 'true' } })
  expect([unchanged.code, unchanged.stderr, applied.length]).toEqual([0, `${node}: edit cancelled, nothing changed\n`, 1])
  expect((await talosctl(methods, ['edit', 'mc'], { env: { EDITOR: '/nope' } })).stderr).toContain('set $EDITOR to one that can')
})

test('an edit that is refused is opened again with the reason at its line, and nothing of it is lost', async () => {
  const applied: Applied[] = []
  const seen = join(folder, 'seen')
  const editor = join(folder, 'clumsy-editor')
  // First a key that does not exist; the second time what is shown is put aside and the key mended.
  writeFileSync(
    editor,
    `#!/bin/sh\nif grep -q typ: "$1"; then cp "$1" ${seen}; sed -i s/typ:/type:/ "$1"; else sed -i 's/type: worker/typ: init/' "$1"; fi\n`,
  )
  chmodSync(editor, 0o755)
  const methods = [applying(applied), holding]
  expect((await talosctl(methods, ['edit', 'mc'], { env: { EDITOR: editor } })).code).toBe(0)
  expect(applied.map(({ data }) => data)).toEqual([config.replace('worker', 'init')])
  expect(readFileSync(seen, 'utf8')).toContain(
    '#! line 3, column 5, document v1alpha1: machine.typ: unknown key "typ", did you mean "type"?\n    typ: init',
  )
})

test('what was written and not taken stays in a file that is named', async () => {
  const editor = join(folder, 'editor-once')
  writeFileSync(editor, '#!/bin/sh\nsed -i s/worker/controlplane/ "$1"\n')
  chmodSync(editor, 0o755)
  const away = unary('machine.MachineService/ApplyConfiguration', admins, () => {
    throw new RpcError('Unavailable', 'gone')
  })
  const { code, stderr } = await talosctl([away, holding], ['edit', 'mc'], { env: { EDITOR: editor } })
  const [, kept = ''] = /what you wrote is kept in "([^"]+)"/.exec(stderr) ?? []
  expect([code, readFileSync(kept, 'utf8').includes('type: controlplane # kept')]).toEqual([1, true])
  rmSync(dirname(kept), { recursive: true })
})

test('bootstrap calls one node, with a snapshot on request', async () => {
  const calls: unknown[] = []
  let size = 0
  const methods = [
    unary('machine.MachineService/Bootstrap', admins, (request) => {
      calls.push(request)
      return { messages: [{}] }
    }),
    clientStream('machine.MachineService/EtcdRecover', admins, async (requests) => {
      for await (const { bytes } of requests) size += bytes.length
      return { messages: [{}] }
    }),
  ]
  expect((await talosctl(methods, ['bootstrap'])).code).toBe(0)
  expect((await talosctl(methods, ['bootstrap', '--recover-from', file, '--recover-skip-hash-check'])).code).toBe(0)
  expect([calls, size]).toEqual([
    [
      { recoverEtcd: false, recoverSkipHashCheck: false },
      { recoverEtcd: true, recoverSkipHashCheck: true },
    ],
    config.length,
  ])
  expect((await talosctl(methods, ['bootstrap', '-n', 'a,b'])).stderr).toContain('not supported with multiple nodes')
})

test('a machine in maintenance is reached without certificates, and identified by its fingerprint', async () => {
  const applied: Applied[] = []
  const methods = [applying(applied)]
  const options = { maintenance: true, env: { TALOSCONFIG: '/nonexistent' } }
  const args = ['apply-config', '--insecure', '-f', file, '-n', 'HERE']
  expect((await talosctl(methods, args, options)).code).toBe(0)
  expect((await talosctl(methods, [...args, '--cert-fingerprint', fingerprint], options)).code).toBe(0)
  expect(applied.map(({ node: where }) => where)).toEqual([undefined, undefined])
  const { code, stderr } = await talosctl(methods, [...args, '--cert-fingerprint', 'AAAA'], options)
  expect([code, applied.length]).toEqual([1, 2])
  expect(stderr).toContain('which is not among those accepted')
})
