/** Following resources of a machine over its resource API, for as long as both live. */
import type { Logger } from '../../cosi/log.ts'
import type { Resource } from '../../cosi/resource.ts'
import { cosi as enums } from '../enums.ts'
import type { cosi } from '../messages.ts'
import { fromMessage } from '../resource-of-message.ts'
import type { Init } from '../server/method.ts'
import type { Channel } from './channel.ts'

const { EventType } = enums.resource

/** Calls back with each resource that is there or changes, and those that go; watches again whenever a watch ends, until the signal. */
export async function follow(
  channel: Channel,
  watched: Init<cosi.resource.WatchRequest>,
  { signal, log }: { signal: AbortSignal; log: Logger },
  take: (resource: Resource, gone: boolean) => void,
): Promise<void> {
  for (let pause = 20; !signal.aborted; pause = Math.min(pause * 2, 2_000)) {
    try {
      for await (const { event } of channel.serverStream('cosi.resource.State/Watch', { ...watched, apiVersion: 1 }, { signal })) {
        pause = 20
        for (const { eventType, resource } of event) {
          if (eventType === EventType.ERRORED) throw new Error('the watch fell behind')
          if (resource && eventType <= EventType.DESTROYED) take(fromMessage(resource), eventType === EventType.DESTROYED)
        }
      }
    } catch (error) {
      if (!signal.aborted) log.debug('watch failed, will be retried', { type: watched.type, error })
    }
    if (!signal.aborted) await Bun.sleep(pause)
  }
}
