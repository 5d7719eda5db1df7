import { afterEach, beforeEach, expect, test } from 'bun:test'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe } from '../../../../../src/cosi/meta.ts'
import { Store } from '../../../../../src/cosi/store.ts'
import { Member } from '../../../../../src/os/cluster/resources/member.ts'
import { MachineConfig } from '../../../../../src/os/config/resources/machine-config.ts'
import { fingerprintOf } from '../../../../../src/programs/talosctl/rotation/authority.ts'
import { roleAccess } from '../../../../../src/rpc/server/resource-access.ts'
import { stateMethods } from '../../../../../src/rpc/server/state.ts'
import { talosctl } from '../../peer.ts'
import { controlPlane, secrets } from '../../rotation/machines.ts'

let home = ''
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'ichor-rotate-'))
})
afterEach(() => rmSync(home, { recursive: true }))

async function run(...args: string[]) {
  return runWith([], ...args)
}

/** With these nodes in the client configuration. */
async function runWith(nodes: string[], ...args: string[]) {
  const store = new Store()
  describe(store, [MachineConfig, Member], { meta: '', config: '', cluster: '' })
  for (const [hostname, machineType, address] of [
    ['one', 'controlplane', '10.0.0.1'],
    ['two', 'worker', '10.0.0.4'],
  ] as const)
    store.put(Member, hostname, { nodeId: hostname, addresses: [address], hostname, machineType, operatingSystem: '' })
  store.put(MachineConfig, 'v1alpha1', controlPlane.text)
  return talosctl(stateMethods(roleAccess), args, { store, nodes, env: { TALOS_HOME: home } })
}

const named = ['--control-plane-nodes', '10.0.0.2,10.0.0.3', '--worker-nodes', '10.0.0.4', '--init-node', '10.0.0.1']

test('a dry run, which is the default, shows both rotations in their order, without a key, and keeps nothing', async () => {
  const { code, stdout, stderr } = await run('rotate-ca', ...named)
  const all = '10.0.0.1, 10.0.0.2, 10.0.0.3, 10.0.0.4'
  const rounds = ['1. accept the new authority', '2. issue with the new authority', '3. drop the old authority']
  expect([code, stderr]).toEqual([0, ''])
  expect(stdout.trimEnd().split('\n')).toEqual([
    `machine API: the authority ${fingerprintOf(secrets.certs.os.crt)} is replaced`,
    ...rounds.map((round) => `  ${round}: ${all}`),
    `Kubernetes: the authority ${fingerprintOf(secrets.certs.k8s.crt)} is replaced`,
    ...rounds.map((round) => `  ${round}: ${all}`),
    'the new client configuration is written to "talosconfig"',
    'nothing was changed: run it with --dry-run=false',
  ])
  expect(existsSync(join(home, 'rotations'))).toBe(false)
})

test('nodes of the client configuration are not called at once', async () => {
  const { code, stdout } = await runWith(['10.0.0.1', '10.0.0.4'], 'rotate-ca')
  expect([code, stdout]).toEqual([0, expect.stringContaining('1. accept the new authority: 10.0.0.1, 10.0.0.4\n')])
})

test.each([
  [['--talos=false'], 'Kubernetes: ', 'machine API: '],
  [['--kubernetes=false'], 'machine API: ', 'Kubernetes: '],
])('%j leaves the other one', async (flags, shown, left) => {
  const { stdout } = await run('rotate-ca', ...named, ...flags)
  expect([stdout.includes(shown), stdout.includes(left)]).toEqual([true, false])
})

test.each([
  [['--talos=false', '--kubernetes=false'], 'nothing to rotate: --talos=false and --kubernetes=false exclude each other\n'],
  [['--with-docs=false'], 'comments of configurations stay as they are: leave --with-docs and --with-examples out\n'],
  [['--worker-nodes', '10.0.0.4'], '--worker-nodes needs --control-plane-nodes beside it\n'],
])('%j is refused', async (flags, message) => {
  expect(await run('rotate-ca', ...flags)).toEqual({ code: 1, stdout: '', stderr: message })
})
