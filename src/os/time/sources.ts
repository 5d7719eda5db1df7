/** Sources of time: network servers, and clocks of devices. */
import { pause } from '../../timing/pause.ts'
import { messageOf } from '../../wire/error-message.ts'
import type { Kernel } from '../kernel.ts'
import { LeaveAlone, type Source, type SteadyTime } from './ntp/synchronizer.ts'
import { queryTimeServer, TimeServerError } from './time-server.ts'

/** The calls it uses. */
export type ReadableTime = Pick<Kernel['time'], 'clock' | 'deviceClock'>

const seconds = (nanoseconds: bigint) => Number(nanoseconds) / 1e9
/** How long a server that answers with a kiss code is not polled (RFC 5905 section 7.4), in seconds. */
const kissIntervals: Readonly<Record<string, number>> = { RATE: 64, DENY: 3600, RSTR: 3600 }

/** A source by its name: `/dev/ptp0` is a device, anything else a server. */
export function sourceOf(name: string, time: ReadableTime): Source {
  return name.startsWith('/dev/') ? deviceSource(name, time) : serverSource(name, time)
}

/** A server. The address that answered is used for as long as it answers: another address is another clock. */
function serverSource(name: string, time: ReadableTime): Source {
  let address: string | undefined
  return {
    name,
    async ask(signal) {
      try {
        const answer = await queryTimeServer(name, { now: () => time.clock('realtime'), signal, address })
        address = answer.address
        return { ...answer, offset: seconds(answer.offset), delay: seconds(answer.delay) }
      } catch (error) {
        address = undefined
        const retryInterval = error instanceof TimeServerError ? kissIntervals[error.code] : undefined
        throw retryInterval === undefined ? error : new LeaveAlone(messageOf(error), retryInterval)
      }
    },
  }
}

/** The clock of a device (PTP), which a hypervisor or a network interface keeps right. */
function deviceSource(path: string, time: ReadableTime): Source {
  return {
    name: path,
    async ask() {
      const { offset, window } = time.deviceClock(path)
      return { offset: seconds(offset), delay: seconds(window), leap: 0, rootDelay: 0, rootDispersion: 0 }
    },
  }
}

/** The machine's monotonic clock. */
export const steadyTime = (time: Pick<ReadableTime, 'clock'>): SteadyTime => ({
  now: () => seconds(time.clock('monotonic')),
  sleep: (duration, signal) => pause(duration * 1000, signal),
})
