import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Command } from 'commander'
import { RpcError } from '../../../rpc/status.ts'
import { type ApplyFlags, applyOptions } from '../apply-mode.ts'
import { applyTo } from '../applying.ts'
import type { Cluster } from '../cluster.ts'
import { describe, UsageError } from '../failure.ts'
import type { Io } from '../io.ts'
import { checkChangeable, machineConfig } from '../machine-config.ts'

interface EditFlags extends ApplyFlags {
  namespace?: string
}

/** talosctl edit */
export const edit = (io: Io, cluster: Cluster) => {
  const command = new Command()
    .description('Edit the machine configuration of nodes in $TALOS_EDITOR, $EDITOR or vi.')
    .argument('<type>', '"machineconfig"')
    .argument('[id]', 'the resource', 'v1alpha1')
    .option('--namespace <namespace>', "look in this namespace instead of the type's own")
  for (const option of applyOptions()) command.addOption(option)
  return command.action((type: string, id: string, flags: EditFlags) => runEdit(io, cluster, type, id, flags))
}

/** Opens each named node's configuration and applies what was saved; what is refused is opened again with the reason on top. */
export async function runEdit(io: Io, cluster: Cluster, type: string, id: string, flags: EditFlags): Promise<void> {
  checkChangeable(type)
  const folder = await mkdtemp(join(tmpdir(), 'ichor-edit-'))
  try {
    for (const node of await cluster.named('edit')) {
      const before = await machineConfig(cluster, node, id)
      await editUntilApplied(io, cluster, node, before, flags, join(folder, `${node.replace(/[^\w.-]/g, '_')}.yaml`))
    }
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

async function editUntilApplied(io: Io, cluster: Cluster, node: string, before: string, flags: EditFlags, file: string): Promise<void> {
  let text = before
  let reason = ''
  for (;;) {
    const head = [
      `Machine configuration of ${node}.`,
      'Lines like these are left out; save without a change to give up.',
      ...reason.split('\n').filter(Boolean),
    ]
    await writeFile(file, `${head.map((line) => `${mark} ${line}\n`).join('')}${text}`, { mode: 0o600 })
    await openEditor(io, file)
    const saved = (await readFile(file, 'utf8'))
      .split('\n')
      .filter((line) => !line.startsWith(mark))
      .join('\n')
    if (saved.trim() === '' || saved === (reason ? text : before)) {
      io.stderr.write(`${node}: edit cancelled, nothing changed\n`)
      return
    }
    try {
      await applyTo(io, cluster, Buffer.from(saved), flags, node)
      io.stderr.write(`edited MachineConfigs.config.talos.dev/v1alpha1 at the node ${node}\n`)
      return
    } catch (error) {
      if (!(error instanceof RpcError) && !(error instanceof Error && error.name === 'NodeErrors')) throw error
      reason = describe(error)
      text = saved
    }
  }
}

const mark = '#!'

async function openEditor(io: Io, file: string): Promise<void> {
  const editor = io.env.TALOS_EDITOR || io.env.EDITOR || 'vi'
  const [command = 'vi', ...args] = editor.split(' ').filter(Boolean)
  try {
    const child = Bun.spawn([command, ...args, file], { stdio: ['inherit', 'inherit', 'inherit'] })
    const code = await child.exited
    if (code !== 0) throw new UsageError(`editor "${editor}" ended with exit code ${code}`)
  } catch (error) {
    if (error instanceof UsageError) throw error
    throw new UsageError(`editor "${editor}" cannot be started: set $EDITOR to one that can`)
  }
}
