/** What a node knows about its types of resources: names, aliases and the columns to show. */

import { nearestOf } from '../../../document/nearest.ts'
import type { cosi } from '../../../rpc/messages.ts'
import { RpcError } from '../../../rpc/status.ts'
import type { CallOptions, Cluster } from '../cluster.ts'
import { parsePath, printValue } from '../output/jsonpath.ts'

/** One type of resources. */
export interface Definition {
  readonly id: string
  readonly type: string
  readonly displayType: string
  readonly defaultNamespace: string
  readonly names: readonly string[]
  readonly columns: readonly { readonly name: string; readonly path: string }[]
  readonly sensitive: boolean
}

/** The resource types of a node, by default the endpoint. */
export async function definitions(cluster: Cluster, node?: string, signal?: AbortSignal): Promise<Definition[]> {
  const found: Definition[] = []
  const request = { namespace: 'meta', type: 'ResourceDefinitions.meta.cosi.dev' }
  for await (const { resource } of cluster.stream('cosi.resource.State/List', request, { node, timeout: 30_000, signal })) {
    if (resource) found.push(definitionOf(resource))
  }
  return found
}

/** The specs of all resources of a type, by id. */
export async function specsOf(
  cluster: Cluster,
  kind: { namespace: string; type: string },
  options: CallOptions,
): Promise<Map<string, unknown>> {
  const found = new Map<string, unknown>()
  for await (const { resource } of cluster.stream('cosi.resource.State/List', kind, options))
    if (resource) found.set(resource.metadata?.id ?? '', specOf(resource))
  return found
}

/** A type's definition from the resource that describes it. */
function definitionOf(resource: cosi.resource.Resource): Definition {
  const spec = (specOf(resource) ?? {}) as Record<string, unknown>
  const id = resource.metadata?.id ?? ''
  const strings = (value: unknown) => (Array.isArray(value) ? value.map(String) : [])
  const columns = Array.isArray(spec.printColumns) ? (spec.printColumns as Record<string, unknown>[]) : []
  return {
    id,
    type: String(spec.type ?? ''),
    displayType: String(spec.displayType ?? ''),
    defaultNamespace: String(spec.defaultNamespace ?? ''),
    names: [id, ...strings(spec.aliases), ...strings(spec.allAliases)],
    columns: columns.map(({ name, jsonPath }) => ({ name: String(name), path: String(jsonPath) })),
    sensitive: spec.sensitivity === 'sensitive',
  }
}

/** The type that a user's word means. Throws NotFound with the nearest names, InvalidArgument when it means several. */
export function resolveType(known: readonly Definition[], word: string): Definition {
  const lower = word.toLowerCase()
  const matches = known.filter(({ names }) => names.includes(lower))
  const [match, ...others] = matches
  if (!match) {
    const near = nearestOf(
      lower,
      known.flatMap(({ names }) => names),
    )
    const hint = near.length > 0 ? `, did you mean ${near.map((name) => `"${name}"`).join(' or ')}?` : ', "talosctl get rd" lists all'
    throw new RpcError('NotFound', `resource "${word}" is not registered${hint}`)
  }
  if (others.length > 0) {
    throw new RpcError('InvalidArgument', `resource type "${word}" is ambiguous: it means ${matches.map(({ id }) => id).join(' or ')}`)
  }
  return match
}

/** A resource's spec as the value of its YAML; a string when it is not YAML. */
export function specOf({ spec }: cosi.resource.Resource): unknown {
  const yaml = spec?.yamlSpec ?? ''
  if (yaml === '') return undefined
  try {
    return Bun.YAML.parse(yaml)
  } catch {
    return yaml
  }
}

/** A function from a spec to the cells of its type's columns. */
export function cellsOf({ columns }: Definition): (spec: unknown) => string[] {
  const paths = columns.map(({ path }) => parsePath(path))
  return (spec) => paths.map((path) => path(spec).map(printValue).join(' '))
}
