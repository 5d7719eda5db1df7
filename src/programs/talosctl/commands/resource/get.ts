import { Command } from 'commander'
import { cosi as wire } from '../../../../rpc/enums.ts'
import type { cosi } from '../../../../rpc/messages.ts'
import { RpcError } from '../../../../rpc/status.ts'
import type { Cluster } from '../../cluster.ts'
import { LiveArgument } from '../../completion/live-argument.ts'
import { resourceIds, resourceTypes } from '../../completion/suggestions.ts'
import { describe, NodeErrors, UsageError } from '../../failure.ts'
import { firstAnswer } from '../../fan-out.ts'
import type { Io } from '../../io.ts'
import { parseTemplate, sortedKeys, type Template } from '../../output/jsonpath.ts'
import { LiveTable, type Row, table } from '../../output/table.ts'
import { cellsOf, type Definition, definitions, resolveType, specOf } from '../../resource/definition.ts'
import { toObject, toYaml } from '../../resource/view.ts'

interface GetOptions {
  namespace?: string
  output: string
  watch?: boolean
  insecure?: boolean
}

/** Milliseconds that a node may take to list the resources of a type. */
const readTimeout = 60_000

/** talosctl get */
export const get = (io: Io, cluster: Cluster) =>
  new Command()
    .description('Show resources: a list of a type, or one by its id. "talosctl get rd" lists the types.')
    .addArgument(new LiveArgument('<type>', 'type or alias of it', resourceTypes))
    .addArgument(new LiveArgument('[id]', 'the resource', resourceIds))
    .option('--namespace <namespace>', "look in this namespace instead of the type's own")
    .option('-o, --output <format>', 'table, yaml, json or jsonpath=<template>', 'table')
    .option('-w, --watch', 'show changes until interrupted')
    .option('-i, --insecure', 'ask a node in maintenance mode, which has no certificates yet')
    .action((type: string, id: string | undefined, options: GetOptions) => runGet(io, cluster, type, id, options))

type Format = { kind: 'table' | 'yaml' | 'json' } | { kind: 'jsonpath'; template: Template }

/** Prints resources of every node, once or as they change. */
export async function runGet(io: Io, cluster: Cluster, type: string, id: string | undefined, options: GetOptions): Promise<void> {
  const format = parseFormat(options.output)
  const server = options.insecure ? await cluster.insecure() : cluster
  try {
    const definition = resolveType(await definitionsOf(io, server), type)
    const query: Query = { namespace: options.namespace ?? definition.defaultNamespace, type: definition.type, id }
    await (options.watch ? watch(io, server, definition, query, format) : show(io, server, definition, query, format))
  } finally {
    if (server !== cluster) await server.close()
  }
}

/** The types that the first of the nodes to answer knows. */
async function definitionsOf({ signal }: Io, cluster: Cluster): Promise<Definition[]> {
  const nodes = await cluster.nodes()
  if (nodes.length <= 1) return definitions(cluster, nodes[0])
  return firstAnswer(nodes, (node, own) => definitions(cluster, node, own), { timeout: readTimeout, signal })
}

interface Query {
  readonly namespace: string
  readonly type: string
  readonly id?: string | undefined
}

function parseFormat(output: string): Format {
  if (output === 'table' || output === 'yaml' || output === 'json') return { kind: output }
  if (output.startsWith('jsonpath=')) return { kind: 'jsonpath', template: parseTemplate(output.slice('jsonpath='.length)) }
  throw new UsageError(`output format "${output}" is not known: want table, yaml, json or jsonpath=<template>`)
}

async function show(io: Io, cluster: Cluster, definition: Definition, query: Query, format: Format): Promise<void> {
  const cells = cellsOf(definition)
  const print = (found: readonly { name: string; resource: cosi.resource.Resource }[]) => {
    const rows = found.map(({ name, resource }) => [name, ...row(definition, resource), ...cells(specOf(resource))])
    if (format.kind === 'table') io.stdout.write(table([header(definition), ...rows]))
    else for (const [index, { name, resource }] of found.entries()) io.stdout.write(document(resource, name, format, index))
  }
  const { items, failure } = await cluster
    .collect(async function* (node, name, signal) {
      for await (const resource of read(cluster, node, query, signal)) yield { name, resource }
    }, readTimeout)
    .catch((error: unknown) => ({ items: [], failure: nodeErrors(error) }))
  print(items)
  if (failure) throw failure
}

/** Failures of nodes, after which the table is still printed; throws everything else. */
function nodeErrors(error: unknown): NodeErrors {
  if (error instanceof NodeErrors) return error
  if (!(error instanceof RpcError) || error.status === 'Canceled') throw error
  return new NodeErrors([{ node: '', error }])
}

async function* read(
  cluster: Cluster,
  node: string | undefined,
  { id, ...query }: Query,
  signal: AbortSignal,
): AsyncGenerator<cosi.resource.Resource, void> {
  if (id !== undefined) {
    const { resource } = await cluster.unary('cosi.resource.State/Get', { ...query, id }, { node, signal })
    if (resource) yield resource
    return
  }
  for await (const { resource } of cluster.stream('cosi.resource.State/List', query, { node, timeout: readTimeout, signal }))
    if (resource) yield resource
}

const marks: Record<number, { name: string; mark: string }> = {
  [wire.resource.EventType.CREATED]: { name: 'created', mark: '+' },
  [wire.resource.EventType.UPDATED]: { name: 'updated', mark: ' ' },
  [wire.resource.EventType.DESTROYED]: { name: 'destroyed', mark: '-' },
}

/** Milliseconds for which the first print waits for nodes that are late. */
const startTimeout = 1000

/**
 * Prints what is there in one go, then each change; the columns are those of the first print and grow when they must. A node that is lost
 * is reported when that happens, and the others go on. Throws when all are lost.
 */
async function watch(io: Io, cluster: Cluster, definition: Definition, query: Query, format: Format): Promise<void> {
  const nodes = await cluster.nodes()
  const watched: (string | undefined)[] = nodes.length > 0 ? [...nodes] : [undefined]
  const screen = new WatchScreen(io, definition, format, watched)
  const lost: { node: string; error: Error }[] = []
  const follow = async (node: string | undefined) => {
    try {
      await followNode(cluster, node, query, screen)
    } catch (thrown) {
      if (io.signal.aborted) return
      const error = thrown instanceof Error ? thrown : new Error(String(thrown))
      lost.push({ node: node ?? '', error })
      screen.started(node)
      if (lost.length < watched.length) io.stderr.write(`${node}: ${describe(error)}; the other nodes are still watched\n`)
    }
  }
  await Promise.all(watched.map(follow))
  screen.close()
  const [first] = lost
  if (!first || io.signal.aborted) return
  throw watched.length === 1 ? first.error : new NodeErrors(lost, watched.length)
}

async function followNode(cluster: Cluster, node: string | undefined, query: Query, screen: WatchScreen): Promise<void> {
  const name = node ?? (await cluster.peer())
  const options = query.id === undefined ? { bootstrapContents: true } : {}
  for await (const { event } of cluster.stream('cosi.resource.State/Watch', { ...query, options, apiVersion: 1 }, { node })) {
    for (const { eventType, resource, error } of event) {
      if (eventType === wire.resource.EventType.ERRORED) throw new Error(`watch on ${name} ended: ${error}`)
      const mark = marks[eventType]
      if (mark && resource) screen.show(name, mark, resource)
      if (eventType === wire.resource.EventType.BOOTSTRAPPED || query.id !== undefined) screen.started(node)
    }
  }
}

/** What a watch prints. */
class WatchScreen {
  readonly #lines = new LiveTable()
  readonly #cells: ReturnType<typeof cellsOf>
  #waiting: Row[] | undefined
  readonly #starting: Set<string | undefined>
  #shown = 0
  #timer: ReturnType<typeof setTimeout> | undefined

  constructor(
    readonly io: Io,
    readonly definition: Definition,
    readonly format: Format,
    nodes: readonly (string | undefined)[],
  ) {
    this.#cells = cellsOf(definition)
    const [node, ...rest] = header(definition)
    this.#waiting = format.kind === 'table' ? [[node, '*', ...rest]] : undefined
    this.#starting = new Set(nodes)
  }

  show(node: string, { name, mark }: { name: string; mark: string }, resource: cosi.resource.Resource): void {
    const { io, definition, format } = this
    if (format.kind !== 'table') {
      io.stdout.write(document(resource, node, format, this.#shown++, name))
      return
    }
    const next = [node, mark, ...row(definition, resource), ...this.#cells(specOf(resource))]
    if (this.#waiting) this.#waiting.push(next)
    else io.stdout.write(this.#lines.line(next))
  }

  /** A node has shown all that was there, or is lost. */
  started(node: string | undefined): void {
    this.#starting.delete(node)
    if (this.#starting.size === 0) this.close()
    else this.#timer ??= setTimeout(() => this.close(), startTimeout)
  }

  /** Ends the wait for what is there. */
  close(): void {
    clearTimeout(this.#timer)
    const waiting = this.#waiting ?? []
    this.#lines.fit(waiting)
    for (const one of waiting) this.io.stdout.write(this.#lines.line(one))
    this.#waiting = undefined
  }
}

function header({ columns }: Definition): string[] {
  return ['NODE', 'NAMESPACE', 'TYPE', 'ID', 'VERSION', ...columns.map(({ name }) => name.toUpperCase())]
}

function row({ displayType }: Definition, { metadata }: cosi.resource.Resource): string[] {
  return [metadata?.namespace ?? '', displayType, metadata?.id ?? '', metadata?.version ?? '']
}

function document(resource: cosi.resource.Resource, node: string, format: Format, index: number, event?: string): string {
  if (format.kind === 'jsonpath') return format.template(toObject(resource, node, event))
  if (format.kind === 'json') return `${JSON.stringify(sortedKeys(toObject(resource, node, event)), null, 4)}\n`
  return `${index > 0 ? '---\n' : ''}${toYaml(resource, node, event)}`
}
