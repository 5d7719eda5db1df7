import { type Controller, defineController, exclusive, weak } from './controller.ts'
import type { Resource, ResourceType } from './resource.ts'

/**
 * A controller that merges layered specs into final ones. Layered resources are in the namespace `<namespace>-config` under
 * ids `<layer>/<id>`. Those with the same id (or the same result of `id`) are merged into one, the strongest layer last.
 */
export function merge<S extends { layer: string }>(
  name: string,
  type: ResourceType<S>,
  fold: (layered: readonly Resource<S>[]) => S | undefined,
  options: { order?: readonly string[]; id?: (resource: Resource<S>) => string } = {},
): Controller {
  const { order = layers, id: idOf = ({ metadata }) => unlayered(metadata.id) } = options
  return defineController({
    name,
    effects: 'none',
    inputs: { layered: weak(type, `${type.namespace}-config`) },
    outputs: { final: exclusive(type) },
    reconcile({ layered, final }) {
      const groups = new Map<string, Resource<S>[]>()
      for (const resource of layered.list()) {
        const id = idOf(resource)
        groups.set(id, [...(groups.get(id) ?? []), resource])
      }
      for (const [id, group] of groups) {
        const spec = fold(group.sort((a, b) => order.indexOf(a.spec.layer) - order.indexOf(b.spec.layer) || byName(a, b)))
        if (spec !== undefined) final.put(id, spec)
      }
    },
  })
}

// Within a layer the order is fixed: by id.
const byName = (a: Resource, b: Resource) => (a.metadata.id < b.metadata.id ? -1 : 1)

/** Network configuration layers, weakest first. */
export const layers = ['default', 'cmdline', 'platform', 'operator', 'configuration'] as const

/** The spec of the strongest layer. */
export const strongest = <S>(layered: readonly Resource<S>[]): S | undefined => layered.at(-1)?.spec

/** `<layer>/<id>` without its layer. */
export function unlayered(id: string): string {
  return id.slice(id.indexOf('/') + 1)
}
