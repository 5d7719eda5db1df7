/**
 * Members of etcd that are lost while clients write, read and watch: one whose data is damaged joins again by itself, one whose machine
 * is gone is replaced by a command that is killed twice. etcd's own checker judges what the clients saw.
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { nodeDirectory, nodePaths } from '../../src/programs/node-supervisor/layout.ts'
import { eventually, succeeded, TestCluster } from '../cluster/cluster.ts'
import { figure } from '../support/figures.ts'
import { EtcdTool, withHistory } from './etcd-tools.ts'
import { Memberships } from './memberships.ts'
import { damageData, etcdOf } from './robustness/faults.ts'
import { RecordTools } from './robustness/record.ts'

const cluster = new TestCluster('members')
const tool = new EtcdTool(cluster)
const record = new RecordTools(cluster.home)
const [first, second, third, spare] = ['10.85.0.2', '10.85.0.3', '10.85.0.4', '10.85.0.5'] as const
const flags = ['--controlplanes', '4', '--workers', '0', '--cidr', '10.85.0.0/24', ...withHistory]
const count = 500
const nodeAt = (address: string) => {
  const found = cluster.nodes().find(({ ip }) => ip === address)
  if (!found) throw new Error(`no node has the address ${address}`)
  return found
}
const pathsOf = (address: string) => nodePaths(nodeDirectory(join(cluster.state, cluster.name), nodeAt(address).name))
const seconds = (began: number) => `${((performance.now() - began) / 1000).toFixed(1)} s`
const memberships = new Memberships(() => tool.members([first]))

beforeAll(async () => {
  await Promise.all([tool.build(), record.build(), cluster.create(...flags)])
  await tool.login(first)
  await voters([first, second, third, spare])
  succeeded(await cluster.talosctl('-n', spare, 'reset', '--graceful', '--reboot', '--wait=false'))
  await eventually(async () => succeeded(await cluster.talosctl('-n', spare, 'version', '--insecure')), 180)
  await voters([first, second, third])
  await tool.fill(first, '/story/', count)
})
afterAll(async () => {
  await memberships.stop()
  await cluster.destroy()
  cluster.close()
  tool.close()
})

/** Ids of the members by address, as soon as exactly these nodes vote. */
const voters = (nodes: readonly string[]) =>
  eventually(async () => {
    const { stdout } = succeeded(await cluster.talosctl('-n', first, 'etcd', 'members'))
    const rows = stdout
      .trim()
      .split('\n')
      .slice(1)
      .map((line) => line.trim().split(/ {2,}/))
    expect(rows.map((row) => [row.find((cell) => cell.includes(':2379')), row.at(-1)]).toSorted()).toEqual(
      nodes.map((node) => [`https://${node}:2379`, 'false']).toSorted(),
    )
    return new Map(
      rows.map((row) => [
        row.find((cell) => cell.includes(':2379'))?.slice('https://'.length, -':2379'.length) ?? '',
        row.find((cell) => /^[0-9a-f]{16}$/.test(cell)) ?? '',
      ]),
    )
  }, 240)

const keysOf = async (node: string): Promise<number> =>
  (await tool.etcdctl([node], ['get', '/story/', '--prefix', '--keys-only'])).split('\n').filter(Boolean).length

/** Switches a machine off and takes its disk away; returns the id of its member. */
async function loseMachine(address: string, present: readonly string[]): Promise<string> {
  const id = (await voters(present)).get(address) ?? ''
  memberships.lost(id)
  const paths = pathsOf(address)
  succeeded(await cluster.talosctl('-n', address, 'shutdown', '--force', '--wait=false'))
  await eventually(async () => expect(JSON.parse(readFileSync(paths.status, 'utf8')).state).toBe('stopped'))
  rmSync(paths.disk, { recursive: true })
  return id
}

describe('while clients write, read and watch through the two other members', () => {
  let recording: ReturnType<RecordTools['start']> | undefined
  beforeAll(() => {
    recording = record.start([first, third], tool.folder)
    memberships.start()
  })

  test('a member whose log and database are damaged joins again by itself, and has every key', async () => {
    const before = (await voters([first, second, third])).get(third) ?? ''
    const began = performance.now()
    memberships.lost(before)
    await damageData(cluster, nodeAt(third))
    await eventually(async () => expect((await voters([first, second, third])).get(third)).not.toBe(before), 240)
    figure('replacement', 'a member whose data is damaged votes again, with new data', seconds(began))
    await eventually(async () => expect(await keysOf(third)).toBe(count))
    const state = () => cluster.talosctl('-n', third, 'get', 'etcdrepairs', 'etcd', '-o', 'jsonpath={.spec.state}')
    await eventually(async () => expect(succeeded(await state()).stdout.trim()).toBe('voting'))
  })

  test('that is reported, and the damaged data is kept', async () => {
    const explained = (await cluster.talosctl('-n', third, 'explain')).stdout
    expect(explained).toContain('etcd could not use its data (member/')
    expect(readdirSync(pathsOf(third).disk)).not.toEqual([])
    succeeded(await cluster.talosctl('-n', third, 'ls', '/var/lib/etcd.damaged/member/wal'))
    const events = cluster.start('-n', third, 'events', '--tail', '-1')
    let text = ''
    for await (const chunk of events.stdout) {
      text += Buffer.from(chunk).toString()
      if (/EtcdRepairEvent.*REJOINED/.test(text)) break
    }
    events.kill()
    expect(text).toMatch(/EtcdRepairEvent.*PUT_ASIDE.*member\/.* is damaged/)
  })

  test('a member whose machine answers is not replaced', async () => {
    const refused = await cluster.talosctl('etcd', 'replace-member', nodeAt(second).name, '--dry-run=false')
    expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining('answers: remove a member that lives with')])
  })

  test('a machine that waits in maintenance takes the place of one that is gone, though the command is killed twice', async () => {
    const { name } = nodeAt(second)
    const gone = await loseMachine(second, [first, second, third])
    const plan = succeeded(await cluster.talosctl('etcd', 'replace-member', name)).stdout
    expect(plan).toContain(`gone: ${name} (${second}, ${gone})`)
    expect(plan).toContain(`2. delete the Kubernetes node ${name}`)
    expect(plan).toContain('nothing was changed')

    const { console: log, config } = pathsOf(spare)
    const fingerprint = [...readFileSync(log, 'utf8').matchAll(/--cert-fingerprint (\S+)/g)].at(-1)?.[1] ?? ''
    const machine = ['--with', spare, '--config-file', config, '--cert-fingerprint', fingerprint]
    const replace = ['etcd', 'replace-member', name, ...machine, '--dry-run=false', '--timeout', '5m']
    const began = performance.now()
    await killedAfter(`${name} (${second}, ${gone}) was removed from etcd`, ...replace)
    const continued = await killedAfter(`waiting for ${spare} to join`, ...replace)
    expect(continued).toContain(`${name} (${second}, ${gone}) was removed before: this continues`)
    const { stdout } = succeeded(await cluster.talosctl(...replace))
    figure('replacement', 'etcd replace-member, killed twice: the machine that waited in maintenance votes and is healthy', seconds(began))
    expect(stdout).toContain(`has taken the place of ${name} (${second}, ${gone})`)
    await voters([first, third, spare])
    expect(await keysOf(spare)).toBe(count)
    expect((await cluster.objects('get', 'nodes')).items.map(({ metadata }) => metadata.name)).not.toContain(name)
  })

  test('no acknowledged write was lost, and what was left always had a majority', async () => {
    await recording?.stop()
    await memberships.stop()
    const result = await record.judge()
    expect([result.Lost, memberships.without]).toEqual([[], []])
    const figures = (value: number) => Math.round(value).toLocaleString('en')
    figure('replacement', 'calls, of which writes that were acknowledged', `${figures(result.Calls)}, ${figures(result.Acknowledged)}`)
    figure('replacement', 'acknowledged writes that were lost', `${result.Lost.length}`)
    figure('replacement', 'longest time without an acknowledged write', `${result.LongestGap.toFixed(1)} s`)
    figure('replacement', 'lists of members without a majority of members that were left', `0 of ${figures(memberships.seen)}`)
  })
})

/** Runs a command until it has printed this, then kills it; returns what it printed. */
async function killedAfter(words: string, ...args: readonly string[]): Promise<string> {
  const child = cluster.start(...args)
  const errors = new Response(child.stderr).text()
  let text = ''
  for await (const chunk of child.stdout) {
    text += Buffer.from(chunk).toString()
    if (text.includes(words)) child.kill('SIGKILL')
  }
  await child.exited
  if (child.signalCode !== 'SIGKILL') throw new Error(`it ended before it was killed: ${text}${await errors}`)
  return text
}

test('a member is not removed while the others have no majority', async () => {
  const { name } = nodeAt(spare)
  const id = await loseMachine(spare, [first, third, spare])
  const pid = etcdOf(cluster, nodeAt(third))
  process.kill(pid, 'SIGSTOP')
  try {
    const refused = await cluster.talosctl('etcd', 'replace-member', name, '--dry-run=false')
    expect([refused.code, refused.stdout]).toEqual([1, ''])
    expect(refused.stderr).toMatch(/so they have no majority|1 of the 3 voting members are healthy/)
  } finally {
    process.kill(pid, 'SIGCONT')
  }
  expect((await voters([first, third, spare])).get(spare)).toBe(id)
})

test('a new machine with the name and the address of the one that is gone takes its place', async () => {
  const { name } = nodeAt(spare)
  const before = (await voters([first, third, spare])).get(spare) ?? ''
  const replacing = cluster.start('etcd', 'replace-member', name, '--with', name, '--dry-run=false', '--timeout', '5m')
  const printed = [new Response(replacing.stdout).text(), new Response(replacing.stderr).text()]
  await voters([first, third])
  // It brings the machine back that was replaced before, too.
  await cluster.create(...flags)
  const [stdout, stderr] = await Promise.all(printed)
  expect([await replacing.exited, stderr]).toEqual([0, ''])
  expect(stdout).toContain(`has taken the place of ${name} (${spare}, ${before})`)
  expect((await voters([first, second, third, spare])).get(spare)).not.toBe(before)
  expect(await keysOf(spare)).toBe(count)
})
