/** Follows resources of a machine over its resource API. */
import type { Logger } from '../../cosi/log.ts'
import type { Resource } from '../../cosi/resource.ts'
import { pause } from '../../timing/pause.ts'
import { cosi as enums } from '../enums.ts'
import type { cosi } from '../messages.ts'
import { fromMessage } from '../resource-of-message.ts'
import { specFields } from '../resource-shapes.ts'
import type { Init } from '../server/method.ts'
import type { Channel } from './channel.ts'

const { EventType } = enums.resource

/** Options of a watch. */
export interface FollowOptions {
  readonly signal: AbortSignal
  readonly log: Logger
  /** A watch starts: existing resources are reported again, resources destroyed meanwhile are not. */
  readonly began?: () => void
  /** All existing resources were reported, for a watch with `bootstrapContents`. */
  readonly complete?: () => void
}

/** Calls back with each resource that exists, changes or is destroyed; restarts the watch whenever it ends, until the signal is aborted. */
export async function follow(
  channel: Channel,
  watched: Init<cosi.resource.WatchRequest>,
  { signal, log, began, complete }: FollowOptions,
  take: (resource: Resource, gone: boolean) => void,
): Promise<void> {
  for (let retryInterval = 20; !signal.aborted; retryInterval = Math.min(retryInterval * 2, 2_000)) {
    try {
      began?.()
      for await (const { event } of channel.serverStream('cosi.resource.State/Watch', { ...watched, apiVersion: 1 }, { signal })) {
        retryInterval = 20
        for (const { eventType, resource } of event) {
          if (eventType === EventType.BOOTSTRAPPED) complete?.()
          if (eventType === EventType.ERRORED) throw new Error('the watch fell behind')
          if (resource && eventType <= EventType.DESTROYED) take(resourceOf(resource), eventType === EventType.DESTROYED)
        }
      }
    } catch (error) {
      if (!signal.aborted) log.debug('watch failed, will be retried', { type: watched.type, error })
    }
    await pause(retryInterval, signal)
  }
}

/** The resource in a message. The system's own kinds have no message of the field for their spec, only YAML. */
function resourceOf(message: cosi.resource.Resource): Resource {
  const found = fromMessage(message)
  return specFields(found.metadata.type) ? found : { ...found, spec: Bun.YAML.parse(message.spec?.yamlSpec ?? '') }
}
