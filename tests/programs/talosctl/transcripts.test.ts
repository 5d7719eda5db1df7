import { expect, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Command } from 'commander'
import { Cluster } from '../../../src/programs/talosctl/cluster.ts'
import { commands } from '../../../src/programs/talosctl/command-table.ts'
import { build } from '../../../src/programs/talosctl/talosctl.ts'
import { textIo } from './peer.ts'

const folder = join(import.meta.dir, '../../transcripts/node')
const lines = readdirSync(folder).flatMap((file) => readFileSync(join(folder, file), 'utf8').match(/^\$ talosctl .*$/gm) ?? [])
/** The words of each recorded command, without the flags in front. */
const recorded = lines.map((line) => line.replace(/^\$ talosctl (?:(?:-n|-e|--nodes|--talosconfig) \S+ )*/, '').split(' '))

/** Commands that have stories of their own, or need a terminal. */
const elsewhere = new Set([
  'dashboard', // tests/programs/talosctl/dashboard.test.ts, all screens
  'events', // tests/cluster/api.story.ts, as they come
  'cluster create', // every story
  'cluster start', // tests/cluster/cluster.story.ts
  'cluster stop',
  'cluster create qemu', // tests/vm
  'conformance kubernetes', // tests/conformance/smoke.story.ts
  'factory serve', // tests/programs/talosctl/commands/factory/serve.test.ts
  'kms new-key', // tests/programs/talosctl/commands/kms/serve.test.ts
  'kms serve', // tests/interop/kms.story.ts
  'volumes recovery-key', // tests/programs/talosctl/commands/disk/volumes.test.ts, tests/programs/init/recovery.sandbox.ts
  'volumes unlock',
  'measurements', // tests/programs/talosctl/commands/diagnostics/measurements.test.ts, tests/programs/init/sealed.sandbox.ts
  'rotate-ca', // tests/cluster/trust.story.ts
  'rotate service-account-key', // tests/rotation/keys.story.ts
  'rotate secretbox-key',
  'config endpoint', // tests/programs/talosctl/commands/config/config.test.ts
  'config node',
  'config-history list', // tests/cluster/config.story.ts
  'etcd replace-member', // tests/etcd/replacement.story.ts
  'config-history show',
  'config-history diff',
  'config-history restore',
  'upgrade-k8s', // tests/cluster/tools.story.ts
  'image talos-bundle', // tests/programs/talosctl/commands/image/talos-bundle.test.ts
  'etcd backup create', // tests/cluster/recovery.story.ts
  'etcd backup download',
  'etcd backup list',
  'etcd backup sender',
  'etcd restore',
  'extension build', // tests/cluster/extensions/extensions.story.ts
  'extension inspect', // tests/programs/talosctl/extension/extension.test.ts
  'extension validate',
  'platform test', // tests/programs/talosctl/platform/platform.test.ts
  'gen ca', // tests/programs/talosctl/commands/gen/gen.test.ts
  'gen crt',
  'gen csr',
  'gen key',
  'gen keypair',
])

function* leaves(command: Command, path: string[]): Generator<{ name: string; paths: string[][] }> {
  const below = command.commands.filter((one) => one.name() !== 'help')
  const runs = below.length === 0
  if (runs) {
    const alternatives: string[][] = [[]]
    let one: Command | null = command
    const chain: Command[] = []
    for (; one; one = one.parent) chain.unshift(one)
    const paths = chain.reduce(
      (all, each) => all.flatMap((before) => [each.name(), ...each.aliases()].map((name) => [...before, name])),
      alternatives,
    )
    yield { name: path.join(' '), paths }
  }
  for (const one of below) yield* leaves(one, [...path, one.name()])
}

test('every command has a transcript against a real node, or a story', async () => {
  const io = textIo()
  const missing: string[] = []
  for (const [name, entry] of Object.entries(commands))
    for (const leaf of leaves(await build(name, entry, io, new Cluster(io)), [name])) {
      const isRecorded = leaf.paths.some((path) => recorded.some((words) => path.every((word, index) => words[index] === word)))
      if (!isRecorded && !elsewhere.has(leaf.name)) missing.push(leaf.name)
    }
  expect(missing).toEqual([])
})
