/**
 * Predicts what controllers would derive from a change without applying it. Controllers without side effects run on a copy
 * of the store, first as it is, then with the change, and the results are compared.
 */
import type { Controller, Input, Output, Round } from './controller.ts'
import { silent } from './log.ts'
import type { Resource, ResourceType } from './resource.ts'
import { Runtime } from './runtime.ts'
import { Store } from './store.ts'

/** A resource that would be created, changed or removed, and the controller that would do it. */
export interface Consequence {
  readonly what: 'created' | 'updated' | 'removed'
  readonly type: ResourceType
  readonly namespace: string
  readonly id: string
  readonly before?: unknown
  readonly after?: unknown
  readonly owner: string
}

/** Whether a controller only computes, as it declares. */
export const onlyComputes = ({ effects }: Controller): boolean => effects === 'none'

/** Runs the controllers without side effects, downstream of the types that `change` touches, before and after it. */
export async function rehearse(
  live: Pick<Store, 'all' | 'type'>,
  controllers: readonly Controller[],
  touched: readonly Pick<ResourceType, 'type'>[],
  change: (store: Store) => void,
): Promise<Consequence[]> {
  const store = new Store()
  for (const { metadata, spec } of live.all()) {
    const { namespace, id, owner, labels, annotations, phase } = metadata
    const type = live.type(metadata.type)
    if (type && phase === 'running') store.create(type, id, spec, { namespace, owner, labels, annotations })
  }
  const runtime = new Runtime(store, { log: silent })
  const actors = downstream(
    controllers.filter(onlyComputes),
    touched.map(({ type }) => type),
  )
  runtime.register(...actors.map(harmless))
  runtime.start()
  try {
    await runtime.settled()
    const before = snapshot(store, actors)
    change(store)
    await runtime.settled()
    return compare(before, snapshot(store, actors), live)
  } finally {
    runtime.stop()
  }
}

function downstream(controllers: readonly Controller[], touched: readonly string[]): Controller[] {
  const types = new Set(touched)
  const found = new Set<Controller>()
  for (let more = true; more; ) {
    more = false
    for (const controller of controllers) {
      if (found.has(controller) || !Object.values<Input>(controller.inputs).some(({ type }) => types.has(type.type))) continue
      found.add(controller)
      for (const { type } of Object.values<Output>(controller.outputs)) types.add(type.type)
      more = true
    }
  }
  return controllers.filter((controller) => found.has(controller))
}

const harmless = (controller: Controller): Controller => ({
  ...controller,
  reconcile: (round: Round & Record<string, unknown>) => controller.reconcile({ ...round, wakeIn: () => {}, background: () => {} }),
})

function snapshot(store: Store, actors: readonly Controller[]): Map<string, Resource> {
  const owners = new Set(actors.map(({ name }) => name))
  return new Map(
    store
      .all()
      .filter(({ metadata }) => owners.has(metadata.owner))
      .map((resource) => [`${resource.metadata.namespace}/${resource.metadata.type}/${resource.metadata.id}`, resource]),
  )
}

function compare(before: Map<string, Resource>, after: Map<string, Resource>, live: Pick<Store, 'type'>): Consequence[] {
  const consequences: Consequence[] = []
  for (const key of [...new Set([...before.keys(), ...after.keys()])].sort()) {
    const [old, now] = [before.get(key), after.get(key)]
    const either = now ?? old
    if (!either || (old && now && Bun.deepEquals(old.spec, now.spec))) continue
    const { namespace, id, owner, type: name } = either.metadata
    const known = live.type(name)
    if (!known) continue
    const what = !old ? 'created' : now ? 'updated' : 'removed'
    consequences.push({ what, type: known, namespace, id, owner, before: old?.spec, after: now?.spec })
  }
  return consequences
}
