/** The write methods of the resource API, for private servers: no machine serves them. */
import { StoreError } from '../../cosi/errors.ts'
import type { Resource, ResourceType } from '../../cosi/resource.ts'
import type { Store } from '../../cosi/store.ts'
import type { cosi } from '../messages.ts'
import { toMessage } from '../resource-message.ts'
import { fromMessage } from '../resource-of-message.ts'
import { RpcError } from '../status.ts'
import { type Method, unary } from './method.ts'

/** Create, Update and Destroy without a filter, for anyone who can open the socket. */
export const unfilteredWrites: readonly Method[] = [
  unary('cosi.resource.State/Create', 'anyone', ({ resource, options }, { store }) => {
    const { type, given } = read(store, resource)
    const { id, namespace, labels, annotations, owner } = given.metadata
    return { resource: toMessage(store.create(type, id, given.spec, { namespace, labels, annotations, owner: options?.owner || owner })) }
  }),
  unary('cosi.resource.State/Update', 'anyone', ({ newResource, options }, { store }) => {
    const { type, given } = read(store, newResource)
    return {
      resource: toMessage(store.replace(type, given, { owner: options?.owner ?? '', expectedPhase: phaseOf(options?.expectedPhase) })),
    }
  }),
  unary('cosi.resource.State/Destroy', 'anyone', ({ namespace, type: name, id, options }, { store }) => {
    store.destroy(typeOf(store, name), id, { namespace: namespace || undefined, owner: options?.owner ?? '' })
    return {}
  }),
]

function read(store: Store, message: cosi.resource.Resource | undefined): { type: ResourceType; given: Resource } {
  if (!message?.metadata) throw new RpcError('InvalidArgument', 'the resource is missing')
  const type = typeOf(store, message.metadata.type)
  const given = fromMessage(message)
  return { type, given: { ...given, metadata: { ...given.metadata, namespace: given.metadata.namespace || type.namespace } } }
}

function typeOf(store: Store, name: string): ResourceType {
  const type = store.type(name)
  if (!type) throw new StoreError('invalid', `unknown resource type "${name}"`)
  return type
}

function phaseOf(phase: string | undefined): 'running' | 'tearingDown' | undefined {
  if (phase === undefined || phase === '') return undefined
  if (phase !== 'running' && phase !== 'tearingDown') throw new RpcError('InvalidArgument', `unknown phase "${phase}"`)
  return phase
}
