/** The user's own talosconfig and kubeconfig: a cluster's contexts are put in beside what is there, and taken out again when it goes. */

import { existsSync, mkdirSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import * as v from 'valibot'
import { messageOf } from '../../../wire/error-message.ts'
import { clusterPaths } from '../../node-supervisor/layout.ts'
import type { Io } from '../io.ts'
import { talosconfigPaths } from '../talosconfig/path.ts'
import type { Context } from '../talosconfig/talosconfig.ts'

const Merged = v.object({
  talosconfig: v.optional(v.object({ file: v.string(), context: v.string() })),
  kubeconfig: v.optional(v.object({ file: v.string(), context: v.string() })),
})

/** Where a cluster's contexts were put, so that they can be found again. */
export type Merged = v.InferOutput<typeof Merged>

/** Reads where a cluster's contexts were put. */
export function readMerged(directory: string): Merged {
  try {
    const result = v.safeParse(Merged, JSON.parse(readFileSync(recordOf(directory), 'utf8')))
    return result.success ? result.output : {}
  } catch {
    return {}
  }
}

function remember(directory: string, merged: Merged): void {
  writeFileSync(recordOf(directory), JSON.stringify({ ...readMerged(directory), ...merged }), { mode: 0o600 })
}

/** Puts a context into the client configuration and makes it the current one; a name that is another cluster's gets a number behind it. */
export async function mergeTalosconfig(
  io: Io,
  directory: string,
  name: string,
  context: Context,
  flag?: string,
): Promise<{ file: string; context: string }> {
  const { parseDocument } = await import('yaml')
  const file = talosconfigPaths(flag, io.env)[0] ?? ''
  const document = parseDocument(existsSync(file) ? readFileSync(file, 'utf8') : '{}\n')
  if (document.errors[0])
    throw new Error(`"${file}" is not YAML: ${document.errors[0].message.split('\n')[0]}: mend it, or name another file with --talosconfig`)
  const known = (document.toJS({ maxAliasCount: 10 }) ?? {}) as { contexts?: Record<string, { ca?: string }> }
  const before = readMerged(directory).talosconfig
  const taken = (candidate: string) => {
    const there = known.contexts?.[candidate]
    return there !== undefined && there.ca !== context.ca && !(before?.file === file && before.context === candidate)
  }
  let chosen = name
  for (let number = 1; taken(chosen); number++) chosen = `${name}-${number}`
  if (!known.contexts) document.set('contexts', document.createNode({}))
  document.set('context', document.createNode(chosen))
  document.setIn(['contexts', chosen], document.createNode(context))
  // What was empty is written in flow style, which nobody wants to read.
  for (const node of [document.contents, document.get('contexts', true)])
    if (node && typeof node === 'object' && 'flow' in node) node.flow = false
  replace(file, document.toString({ indent: 4, lineWidth: 0 }))
  remember(directory, { talosconfig: { file, context: chosen } })
  return { file, context: chosen }
}

/** Puts a cluster's kubeconfig into the user's and makes it the current context. */
export async function mergeIntoKubeconfig(io: Io, directory: string, text: string): Promise<{ file: string; context: string }> {
  const { emptyKubeconfig, formatKubeconfig, mergeKubeconfig, parseKubeconfig, removeContext } = await import('../../../kube/kubeconfig.ts')
  const file = io.env.KUBECONFIG?.split(':').find((path) => path !== '') ?? join(io.env.HOME || homedir(), '.kube', 'config')
  const before = readMerged(directory).kubeconfig
  let present = existsSync(file) ? parseKubeconfig(readFileSync(file, 'utf8')) : emptyKubeconfig()
  if (before?.file === file) present = removeContext(present, before.context)
  const { config } = mergeKubeconfig(present, parseKubeconfig(text), { activate: true })
  replace(file, formatKubeconfig(config))
  const context = config.currentContext ?? ''
  remember(directory, { kubeconfig: { file, context } })
  return { file, context }
}

/** Whether a cluster's kubeconfig was handed out: it is the last step of making one. */
export function hasMergedKubeconfig(directory: string): boolean {
  return readMerged(directory).kubeconfig !== undefined
}

/** Takes a cluster's contexts out of the files they were put into. */
export async function removeContexts(io: Io, directory: string): Promise<void> {
  const { talosconfig, kubeconfig } = readMerged(directory)
  const attempt = async (file: string, act: () => Promise<void>) => {
    try {
      if (existsSync(file)) await act()
    } catch (error) {
      io.stderr.write(`leaving "${file}" as it is: ${messageOf(error)}\n`)
    }
  }
  if (talosconfig) await attempt(talosconfig.file, () => removeFromTalosconfig(talosconfig.file, talosconfig.context))
  if (kubeconfig) await attempt(kubeconfig.file, () => removeFromKubeconfig(kubeconfig.file, kubeconfig.context))
}

async function removeFromTalosconfig(file: string, context: string): Promise<void> {
  const { parseDocument } = await import('yaml')
  const document = parseDocument(readFileSync(file, 'utf8'))
  if (document.errors[0] || !document.hasIn(['contexts', context])) return
  document.deleteIn(['contexts', context])
  const left = Object.keys((document.toJS({ maxAliasCount: 10 }) as { contexts?: object }).contexts ?? {})
  if (document.get('context') === context) document.set('context', left[0] ?? '')
  replace(file, document.toString({ indent: 4, lineWidth: 0 }))
}

async function removeFromKubeconfig(file: string, context: string): Promise<void> {
  const { formatKubeconfig, parseKubeconfig, removeContext } = await import('../../../kube/kubeconfig.ts')
  replace(file, formatKubeconfig(removeContext(parseKubeconfig(readFileSync(file, 'utf8')), context)))
}

/** Replaces a file in one step; a new one is its owner's alone, an old one keeps its mode. */
function replace(file: string, text: string): void {
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
  const mode = existsSync(file) ? statSync(file).mode & 0o777 : 0o600
  const next = `${file}.${process.pid}.next`
  writeFileSync(next, text, { mode })
  renameSync(next, file)
}

function recordOf(directory: string): string {
  return join(clusterPaths(directory).directory, 'client-files.json')
}
