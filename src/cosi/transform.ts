import { type Controller, defineController, exclusive, shared, strong, weak } from './controller.ts'
import type { Logger } from './log.ts'
import type { Resource, ResourceType } from './resource.ts'

/** A controller that derives one resource from each input resource; undefined derives none. */
export function transform<A, B>(declaration: {
  name: string
  from: ResourceType<A>
  fromNamespace?: string
  to: ResourceType<B>
  toNamespace?: string
  strong?: boolean
  shared?: boolean
  /** The id of the derived resource. Default: the id of the input. */
  id?(resource: Resource<A>): string
  apply(spec: A, context: { log: Logger; resource: Resource<A>; signal: AbortSignal }): B | undefined | Promise<B | undefined>
}): Controller {
  const { name, from, to, apply, id = (resource) => resource.metadata.id } = declaration
  const source = declaration.strong ? strong(from, declaration.fromNamespace) : weak(from, declaration.fromNamespace)
  const target = declaration.shared ? shared(to, declaration.toNamespace) : exclusive(to, declaration.toNamespace)
  return defineController({
    name,
    inputs: { source },
    outputs: { target },
    async reconcile({ source, target, log, signal }) {
      for (const resource of source.list()) {
        const spec = await apply(resource.spec, { log, resource, signal })
        if (spec !== undefined) target.put(id(resource), spec)
      }
    },
  })
}
