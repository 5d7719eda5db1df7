/** Converts a resource of the store to the message of the resource API. */
import type { Metadata, Resource } from '../cosi/resource.ts'
import type { cosi } from './messages.ts'
import { toTimestamp } from './proto-time.ts'
import { encodeSpec } from './resource-codec.ts'
import { specYaml } from './resource-yaml.ts'
import type { Init } from './server/method.ts'

type Message = Init<cosi.resource.Resource>

const made = new WeakMap<Resource, Message>()

/** The message of a resource; built once, as resources are immutable. */
export function toMessage(resource: Resource): Message {
  let message = made.get(resource)
  if (!message) {
    const { metadata, spec } = resource
    message = {
      metadata: metadataMessage(metadata),
      spec: { protoSpec: encodeSpec(metadata.type, spec), yamlSpec: specYaml(metadata.type, spec) },
    }
    made.set(resource, message)
  }
  return message
}

/** The message for a resource that does not exist. */
export function tombstone(namespace: string, type: string, id: string): Message {
  return { metadata: { namespace, type, id, version: 'undefined', phase: 'running' }, spec: {} }
}

function metadataMessage(metadata: Metadata): Init<cosi.resource.Metadata> {
  const { version, created, updated, ...same } = metadata
  return { ...same, version: String(version), created: toTimestamp(created), updated: toTimestamp(updated) }
}
