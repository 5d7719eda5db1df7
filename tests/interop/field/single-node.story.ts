/**
 * The field's own talosctl against a cluster of one node, where no other member shows that a change cut nobody off: it rotates
 * the authority of the machine API, and waits for a restart.
 */

import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { join } from 'node:path'
import { eventually, succeeded, TestCluster } from '../../cluster/cluster.ts'
import { type CommandResult, finished } from '../../support/command-result.ts'
import { buildTalosctl } from '../client.ts'

setDefaultTimeout(300_000)

const cluster = new TestCluster('single')
let program: string
let node: string

beforeAll(async () => {
  program = await buildTalosctl()
  await cluster.create('--workers', '0', '--cidr', '10.69.0.0/24')
  node = cluster.nodes()[0]!.ip
}, 900_000)
afterAll(() => cluster.end())

/** Runs the field's client. */
async function field(...args: string[]): Promise<CommandResult> {
  const child = Bun.spawn([program, ...args, '--nodes', node], {
    env: { ...process.env, ...cluster.env },
    cwd: cluster.home,
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const result = await finished(child)
  expect(result.stderr).not.toContain('goroutine')
  return result
}

test('a node restarts, and the client sees that it did', async () => {
  const id = async () => succeeded(await field('read', '/proc/sys/kernel/random/boot_id')).stdout
  const before = await id()
  succeeded(await field('reboot', '--wait', '--timeout', '4m'))
  expect(await id()).not.toBe(before)
}, 360_000)

test('the authority of the machine API is rotated permanently', async () => {
  const rotated = join(cluster.home, 'rotated')
  const flags = ['--control-plane-nodes', node, '--kubernetes=false', '--dry-run=false', '--output', rotated]
  succeeded(await field('rotate-ca', ...flags))
  // Nobody calls while a change on trial would be reverted: a call over a new connection would confirm it.
  await Bun.sleep(75_000)
  succeeded(await field('version', '--talosconfig', rotated))
  const refused = await field('version')
  expect(refused.code).toBe(1)
  const { stdout } = await eventually(
    async () => succeeded(await cluster.talosctl('config-history', '--talosconfig', rotated, '-n', node)),
    10,
  )
  expect(stdout.split('\n')[1]).toContain('in force, confirmed')
}, 360_000)
