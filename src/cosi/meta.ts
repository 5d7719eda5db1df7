/** The store describes itself: its namespaces and its resource types. */
import * as v from 'valibot'
import { type AnyResourceType, defineResource, type ResourceType } from './resource.ts'
import type { Store } from './store.ts'

/** A namespace and its purpose. */
export const Namespace = defineResource({
  type: 'Namespaces.meta.cosi.dev',
  namespace: 'meta',
  aliases: ['ns'],
  spec: v.object({ description: v.string() }),
})

/** A resource type: its names and its columns. */
export const ResourceDefinition = defineResource({
  type: 'ResourceDefinitions.meta.cosi.dev',
  namespace: 'meta',
  aliases: ['api-resources'],
  columns: { Aliases: '{.aliases[:]}' },
  spec: v.object({
    type: v.string(),
    displayType: v.string(),
    defaultNamespace: v.string(),
    aliases: v.array(v.string()),
    allAliases: v.array(v.string()),
    skipAutomaticAliases: v.optional(v.boolean()),
    printColumns: v.array(v.object({ name: v.string(), jsonPath: v.string() })),
    sensitivity: v.optional(v.string()),
  }),
})

const owner = 'meta'

/** Registers resource types and namespaces in the store, so that clients can list them. */
export function describe(store: Store, types: readonly AnyResourceType[], namespaces: Readonly<Record<string, string>>): void {
  const all = [Namespace, ResourceDefinition, ...types]
  store.register(...(all as ResourceType[]))
  for (const [id, description] of Object.entries(namespaces)) store.put(Namespace, id, { description }, { owner })
  for (const type of all)
    store.put(
      ResourceDefinition,
      type.type.toLowerCase(),
      {
        type: type.type,
        displayType: type.displayType,
        defaultNamespace: type.namespace,
        aliases: shortAliases(type),
        allAliases: allAliases(type),
        ...(!type.automaticAliases && { skipAutomaticAliases: true }),
        printColumns: Object.entries(type.columns).map(([name, jsonPath]) => ({ name, jsonPath })),
        ...(type.sensitive && { sensitivity: 'sensitive' }),
      },
      { owner },
    )
}

type Named = Pick<ResourceType, 'type' | 'displayType' | 'aliases' | 'automaticAliases' | 'initials'>

/** The aliases shown to users: the declared ones, the singular, the initials. */
export function shortAliases({ displayType, aliases, automaticAliases, initials: hasInitials }: Omit<Named, 'type'>): string[] {
  if (!automaticAliases) return [...aliases]
  const initials = displayType.replaceAll(/[^A-Z]/g, '').toLowerCase()
  const short = !hasInitials || initials.length < 2 ? [] : initials.endsWith('s') ? [initials] : [initials, `${initials}s`]
  return [...new Set([...aliases, displayType.toLowerCase(), ...short])]
}

/** Every alias of a type: the plural with more and more of its domain, and the aliases shown to users. */
export function allAliases(named: Named): string[] {
  if (!named.automaticAliases) return [...named.aliases]
  const parts = named.type.toLowerCase().split('.')
  const plurals = parts.slice(0, -1).map((_, index) => parts.slice(0, index + 1).join('.'))
  return [...new Set([...plurals, ...shortAliases(named)])]
}
