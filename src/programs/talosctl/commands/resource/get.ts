import { Command } from 'commander'
import { cosi as wire } from '../../../../rpc/enums.ts'
import type { cosi } from '../../../../rpc/messages.ts'
import { RpcError } from '../../../../rpc/status.ts'
import type { Cluster } from '../../cluster.ts'
import { LiveArgument } from '../../completion/live-argument.ts'
import { resourceIds, resourceTypes } from '../../completion/suggestions.ts'
import { NodeErrors, UsageError } from '../../failure.ts'
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

/** Prints what is there in one go, then each change; the columns are those of the first print and grow when they must. */
async function watch(io: Io, cluster: Cluster, definition: Definition, query: Query, format: Format): Promise<void> {
  const cells = cellsOf(definition)
  const lines = new LiveTable()
  const [node, ...rest] = header(definition)
  let waiting: Row[] | undefined = [[node, '*', ...rest]]
  let shown = 0
  const flush = () => {
    lines.fit(waiting ?? [])
    for (const one of waiting ?? []) io.stdout.write(lines.line(one))
    waiting = undefined
  }
  const nodes = await cluster.nodes()
  const watched: (string | undefined)[] = nodes.length > 0 ? [...nodes] : [undefined]
  let starting = watched.length
  const follow = async (one: string | undefined) => {
    const name = one ?? (await cluster.peer())
    const options = query.id === undefined ? { bootstrapContents: true } : {}
    for await (const { event } of cluster.stream('cosi.resource.State/Watch', { ...query, options, apiVersion: 1 }, { node: one })) {
      for (const { eventType, resource, error } of event) {
        const ended = eventType === wire.resource.EventType.BOOTSTRAPPED || query.id !== undefined
        if (eventType === wire.resource.EventType.ERRORED) throw new Error(`watch on ${name} ended: ${error}`)
        const mark = marks[eventType]
        if (mark && resource) {
          if (format.kind !== 'table') io.stdout.write(document(resource, name, format, shown++, mark.name))
          else {
            const next = [name, mark.mark, ...row(definition, resource), ...cells(specOf(resource))]
            if (waiting) waiting.push(next)
            else io.stdout.write(lines.line(next))
          }
        }
        if (ended && --starting === 0 && format.kind === 'table') flush()
      }
    }
  }
  try {
    await Promise.all(watched.map(follow))
  } catch (error) {
    if (!io.signal.aborted) throw error
  }
  if (waiting && format.kind === 'table') flush()
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
