import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Command } from 'commander'
import { messageOf } from '../../../../wire/error-message.ts'
import type { Cluster } from '../../cluster.ts'
import { describe, failedWith, UsageError } from '../../failure.ts'
import type { Io } from '../../io.ts'
import { type ApplyFlags, applyOptions } from '../../machine-config/apply-mode.ts'
import { applyTo } from '../../machine-config/applying.ts'
import { differenceOf } from '../../machine-config/difference.ts'
import { checkChangeable, machineConfig } from '../../machine-config/machine-config.ts'

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

/**
 * Opens each named node's configuration and applies what was saved. What is refused is opened again with the reasons as
 * comments at their lines; text that was written and not applied stays in its file, whose name is printed.
 */
export async function runEdit(io: Io, cluster: Cluster, type: string, id: string, flags: EditFlags): Promise<void> {
  checkChangeable(type)
  const folder = await mkdtemp(join(tmpdir(), 'ichor-edit-'))
  let lost = false
  try {
    for (const node of await cluster.named('edit')) {
      const file = join(folder, `${node.replace(/[^\w.-]/g, '_')}.yaml`)
      const session = new Session(io, cluster, { node, id, flags, file })
      try {
        await session.run()
      } finally {
        if (session.unsaved) {
          lost = true
          io.stderr.write(`${node}: what you wrote is kept in "${file}"\n`)
        }
      }
    }
  } finally {
    if (!lost) await rm(folder, { recursive: true, force: true })
  }
}

interface Editing {
  readonly node: string
  readonly id: string
  readonly flags: EditFlags
  readonly file: string
}

/** One node's configuration in the editor, as often as it takes. */
class Session {
  /** Something was written that no node has taken. */
  unsaved = false

  constructor(
    readonly io: Io,
    readonly cluster: Cluster,
    readonly editing: Editing,
  ) {}

  async run(): Promise<void> {
    const { io, cluster } = this
    const { node, id, flags, file } = this.editing
    let base = await machineConfig(cluster, node, id)
    let text = base
    let reasons: Reason[] = []
    for (;;) {
      await writeFile(file, annotated(text, [`Machine configuration of ${node}.`, ...guide], reasons), { mode: 0o600 })
      await openEditor(io, file)
      const saved = bare(await readFile(file, 'utf8'))
      if (saved.trim() === '' || saved === text) {
        io.stderr.write(`${node}: edit cancelled, nothing changed\n`)
        return
      }
      this.unsaved = saved !== base
      const now = await machineConfig(cluster, node, id)
      text = saved
      reasons = now === base ? await refusals(saved) : await changedMeanwhile(base, now)
      base = now
      if (reasons.length > 0) continue
      try {
        await applyTo(io, cluster, Buffer.from(saved), flags, node)
        this.unsaved = false
        io.stderr.write(`edited MachineConfigs.config.talos.dev/${id} at the node ${node}${flags.dryRun ? ' (dry run)' : ''}\n`)
        return
      } catch (error) {
        if (!judged(error)) throw error
        reasons = describe(error).split('\n').map(reasonOfNode)
      }
    }
  }
}

/** Why a configuration was not applied; `line` is counted from 1, and 0 for the whole text. */
interface Reason {
  readonly line: number
  readonly text: string
}

/** The answer of a node is text: the API has no field for a position. */
const reasonOfNode = (text: string): Reason => ({ line: Number(/\bline (\d+), column/.exec(text)?.[1] ?? 0), text })

/** Whether the node has looked at the configuration and refused it; anything else is not the author's to mend. */
const judged = (error: unknown): boolean => failedWith(error, 'InvalidArgument')

/** Errors found by the configuration's own parser, before any node is called. */
async function refusals(text: string): Promise<Reason[]> {
  const { ConfigError, formatIssue } = await import('../../../../document/config-error.ts')
  const { parseConfig } = await import('../../../../os/config/parse.ts')
  try {
    parseConfig(text)
    return []
  } catch (error) {
    if (error instanceof ConfigError) return error.issues.map((issue) => ({ line: issue.line ?? 0, text: formatIssue(issue) }))
    return [{ line: 0, text: messageOf(error) }]
  }
}

async function changedMeanwhile(base: string, now: string): Promise<Reason[]> {
  const changes = await differenceOf(base, now)
  if (changes === '') return []
  const head = 'the configuration of the node was changed meanwhile; saving again with a change of yours overwrites this:'
  return [head, ...changes.trimEnd().split('\n')].map((text) => ({ line: 0, text }))
}

const mark = '#!'
const guide = ['Lines like these are left out; save without a change to give up.']

/** The text with each reason above the line it speaks of, those of no line on top. */
function annotated(text: string, head: readonly string[], reasons: readonly Reason[]): string {
  const lines = text.split('\n')
  const placed = Map.groupBy(
    reasons.filter((reason) => reason.text !== ''),
    ({ line }) => Math.min(line, lines.length),
  )
  const comment = (reason: Pick<Reason, 'text'>) => `${mark} ${reason.text.trim()}`
  return [
    ...[...head.map((one) => ({ text: one })), ...(placed.get(0) ?? [])].map(comment),
    ...lines.flatMap((line, index) => [...(placed.get(index + 1) ?? []).map(comment), line]),
  ].join('\n')
}

function bare(text: string): string {
  return text
    .split('\n')
    .filter((line) => !line.startsWith(mark))
    .join('\n')
}

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
