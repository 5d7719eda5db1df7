/** The table of what commands print, row by row, against a machine that answers everything: the command line as scripts see it. */
import { afterAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { node, talosctl } from './peer.ts'
import { sampleMethods } from './sample-methods.ts'

const folder = mkdtempSync(join(tmpdir(), 'ichor-drop-in-'))
afterAll(() => rmSync(folder, { recursive: true }))

const rows = readFileSync(join(import.meta.dir, 'contract/cli-output.tsv'), 'utf8')
  .trimEnd()
  .split('\n')
  .slice(1)
  .map((line) => {
    const [command = '', columns = '', separator = '', nodeColumn = ''] = line.split('\t')
    return { command, columns, separator, nodeColumn }
  })

/** Rows of tables that one call makes, as the words to type; rows of another layout have tests of their own. */
const typed: Record<string, string[][]> = {
  memory: [['memory']],
  stats: [['stats']],
  containers: [['containers']],
  processes: [['processes']],
  'services (list)': [['services'], ['service']],
  'service <id> start|stop|restart': ['start', 'stop', 'restart'].map((action) => ['service', 'apid', action]),
  mounts: [['mounts']],
  list: [['list']],
  'list -l': [['list', '-l']],
  usage: [['usage']],
  netstat: [['netstat']],
  'etcd members': [['etcd', 'members']],
  'etcd status': [['etcd', 'status']],
  'etcd alarm list|disarm': [
    ['etcd', 'alarm', 'list'],
    ['etcd', 'alarm', 'disarm'],
  ],
  'etcd downgrade validate|enable|cancel': [
    ['etcd', 'downgrade', 'validate', '3.5'],
    ['etcd', 'downgrade', 'enable', '3.5'],
    ['etcd', 'downgrade', 'cancel'],
  ],
  events: [['events', '--tail', '1']],
  time: [['time']],
  'image list': [['image', 'list']],
  'upgrade (no wait)': [],
  'config contexts': [['config', 'contexts']],
}

const columnsOf = (line: string) => line.split(/ \| | {2,}/).map((cell) => cell.trim())

describe('the header is that of the table:', () => {
  for (const { command, columns, nodeColumn } of rows.filter((row) => Object.hasOwn(typed, row.command)))
    for (const words of typed[command]!)
      test(words.join(' '), async () => {
        const { code, stdout, stderr } = await talosctl(sampleMethods(), words)
        const wanted = columns.split('|').map((each) => each.trim())
        const named = /^(always|never)/.test(nodeColumn) || wanted[0] === 'NODE' ? wanted : ['NODE', ...wanted]
        expect([code, stderr, columnsOf(stdout.split('\n')[0]!)]).toEqual([0, '', named])
      })

  test('every table of one line a row is typed here', () => {
    const plain = rows.filter(
      ({ columns, separator }) => /^[A-Z]+[^(]*\|/.test(columns) && separator.startsWith('tabwriter') && !columns.includes('['),
    )
    // Watched, hidden and configurable ones have tests of their own.
    expect(plain.map(({ command }) => command).filter((command) => !Object.hasOwn(typed, command))).toEqual([
      'get (table)',
      'get rd',
      'cgroups',
    ])
  })
})

const other = '10.6.0.3'
const failure = { metadata: { hostname: other, error: 'rpc error: code = Unavailable desc = gone', status: { code: 14, message: 'gone' } } }
/** Commands that call all nodes at once. */
const unary = Object.values(typed)
  .flat()
  .filter(([name = '', second]) => !['list', 'usage', 'events', 'config', 'image'].includes(name) && second !== 'downgrade')

describe('of several nodes', () => {
  test.each(unary.map((words) => [words.join(' '), words] as const))(
    'one that fails is a warning, and the rest is shown: %s',
    async (_, words) => {
      const { code, stdout, stderr } = await talosctl(sampleMethods([failure]), words, { nodes: [node, other] })
      expect([code, stderr]).toEqual([0, `WARNING: 1 error occurred:\n\t* ${other}: rpc error: code = Unavailable desc = gone\n`])
      expect(stdout.split('\n')[1]).toStartWith(node)
    },
  )

  test.each(unary.map((words) => [words.join(' '), words] as const))('all that fail are an error: %s', async (_, words) => {
    const all = [failure, { metadata: { ...failure.metadata, hostname: node } }]
    const { code, stdout, stderr } = await talosctl(sampleMethods(all, false), words, { nodes: [node, other] })
    expect([code, stdout]).toEqual([1, ''])
    expect(stderr).toBe(
      `2 errors occurred:\n${[other, node].map((each) => `\t* ${each}: rpc error: code = Unavailable desc = gone\n`).join('')}`,
    )
  })

  const single = rows.filter(({ nodeColumn }) => nodeColumn === 'single node only').flatMap(({ command }) => command.split(' / '))
  test.each(single)('%s is refused', async (command) => {
    const target = join(folder, 'target')
    const words = {
      read: ['read', '/x'],
      copy: ['copy', '/x', target],
      kubeconfig: ['kubeconfig', target],
      'etcd snapshot': ['etcd', 'snapshot', target],
    }
    const { code, stdout, stderr } = await talosctl(sampleMethods(), words[command as keyof typeof words], { nodes: [node, other] })
    expect([code, stdout]).toEqual([1, ''])
    expect(stderr).toStartWith(`command "${command}" is not supported with multiple nodes`)
  })

  test('the refused commands are those of the table', () => {
    expect(single).toEqual(['read', 'copy', 'kubeconfig', 'etcd snapshot'])
  })
})

describe('a command that succeeds prints nothing on stderr:', () => {
  const quiet = [
    ['kubeconfig', join(folder, 'kubeconfig')],
    ['kubeconfig', join(folder, 'kubeconfig')],
    ['kubeconfig', '--no-merge', join(folder, 'alone')],
    ['config', 'new', join(folder, 'talosconfig')],
    ['pcap', '--interface', 'eth0', '-o', join(folder, 'capture')],
    ['wipe', 'disk', 'sdb'],
    ['meta', 'write', '0x0a', 'text'],
    ['meta', 'delete', '0x0a'],
    ['restart', 'apid'],
    ['bootstrap'],
    ['etcd', 'forfeit-leadership'],
    ['etcd', 'leave'],
    ['etcd', 'defrag'],
    ['etcd', 'remove-member', '1'],
  ]
  test.each(quiet.map((words) => [words.slice(0, 3).join(' ').replaceAll(folder, '…'), words] as const))('%s', async (_, words) => {
    const methods = sampleMethods().map((method) => ({ ...method, handle: answers[method.path] ?? method.handle }))
    expect(await talosctl(methods, words)).toEqual({ code: 0, stdout: '', stderr: '' })
  })
})

const clusterFile = `apiVersion: v1
kind: Config
clusters: [{ name: c, cluster: { server: "https://10.6.0.2:6443" } }]
users: [{ name: admin@c, user: { token: x } }]
contexts: [{ name: admin@c, context: { cluster: c, user: admin@c } }]
current-context: admin@c
`
const answers: Record<string, () => unknown> = {
  'machine.MachineService/Kubeconfig': async function* () {
    yield { bytes: Buffer.from(clusterFile) }
  },
  'machine.MachineService/GenerateClientConfiguration': () => ({
    messages: [{ talosconfig: Buffer.from('context: a\ncontexts:\n  a: { ca: eA==, crt: eA==, key: eA== }\n') }],
  }),
  'machine.MachineService/PacketCapture': async function* () {
    yield { bytes: new Uint8Array() }
  },
}

test('etcd without alarms prints nothing at all', async () => {
  for (const verb of ['List', 'Disarm']) {
    const none = () => ({ messages: [{ memberAlarms: [] }] })
    const method = { path: `machine.MachineService/EtcdAlarm${verb}`, access: 'anyone', kind: 'unary', handle: none } as never
    expect(await talosctl([method], ['etcd', 'alarm', verb.toLowerCase()])).toEqual({ code: 0, stdout: '', stderr: '' })
  }
})
