/** Events that a platform wants to hear of: which of the machine's events they are, and how they are sent. */
import type { Clock } from '../../../cosi/clock.ts'
import { messageOf } from '../../../wire/error-message.ts'

/** An event of the machine. */
interface MachineEvent {
  readonly type: string
  readonly payload: Readonly<Record<string, unknown>>
}

/** An event in the notation of Equinix Metal. */
export interface PlatformEvent {
  readonly type: string
  readonly msg: string
}

/** Stages in which the machine is in use: it waits for a configuration, or it runs and is ready. */
const maintenance = 3
const running = 4

/** Numbers of actions in the machine's events. */
const start = 1
const stop = 2
const taskStop = 1

/** The platform's event for one of the machine's; undefined where the platform does not expect one. */
export function platformEvent({ type, payload }: MachineEvent): PlatformEvent | undefined {
  switch (type) {
    case 'machine.ConfigLoadErrorEvent':
    case 'machine.ConfigValidationErrorEvent':
      return { type: 'failure', msg: String(payload.error) }
    case 'machine.TaskEvent':
      return payload.action === taskStop ? afterTask(String(payload.task)) : undefined
    case 'machine.SequenceEvent':
      return ofSequence(payload)
    case 'machine.MachineStatusEvent': {
      const ready = (payload.status as { ready?: boolean } | undefined)?.ready === true
      return payload.stage === maintenance || (payload.stage === running && ready) ? { type: 'activate', msg: '' } : undefined
    }
    default:
      return undefined
  }
}

function afterTask(task: string): PlatformEvent | undefined {
  if (task === 'loadConfig') return { type: 'talos.prov.config.loaded', msg: '' }
  // Not the end of its sequence, which restarts the machine.
  return task === 'install' ? { type: 'talos.prov.os.installed', msg: '' } : undefined
}

function ofSequence({ sequence, action, error }: MachineEvent['payload']): PlatformEvent | undefined {
  if (sequence === 'reboot') return action === start ? { type: 'talos.prov.host.rebooted', msg: '' } : undefined
  if (action !== stop || (sequence !== 'install' && sequence !== 'stageUpgrade')) return undefined
  const { message } = (error ?? {}) as { message?: string }
  if (message !== undefined) return { type: 'failure', msg: message }
  return sequence === 'stageUpgrade' ? { type: 'talos.prov.os.upgraded', msg: '' } : undefined
}

/** Milliseconds: for all attempts at one event, between two of them, and for one. */
const limit = 5 * 60_000
const interval = 1000
const attemptLimit = 10_000

/** Sends an event until the server has answered, with whatever status. Throws a one-line error when it has not in 5 minutes. */
export async function phoneHome(
  url: string,
  event: PlatformEvent,
  clock: Pick<Clock, 'deadline' | 'sleep'>,
  signal: AbortSignal,
): Promise<void> {
  const end = clock.deadline(limit)
  let last = ''
  while (!end.over && !signal.aborted) {
    try {
      const response = await fetch(url, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(event),
        redirect: 'manual',
        signal: AbortSignal.any([signal, AbortSignal.timeout(attemptLimit)]),
      })
      await response.body?.cancel()
      return
    } catch (error) {
      last = messageOf(error).split('\n')[0] ?? ''
    }
    await clock.sleep(interval, signal)
  }
  throw new Error(
    `send event "${event.type}" to the platform: ${signal.aborted ? 'interrupted' : `no answer within ${limit / 60_000} minutes`}${last && `: ${last}`}`,
  )
}
