/** Those who can be asked for the time: servers of the network, and clocks of devices. */
import { pause } from '../../cosi/pause.ts'
import type { Kernel } from '../kernel.ts'
import { LeaveAlone, type Source, type SteadyTime } from './ntp/synchronizer.ts'
import { askTimeServer, TimeServerError } from './time-server.ts'

/** The calls it takes. */
export type TellingTime = Pick<Kernel['time'], 'clock' | 'deviceClock'>

const seconds = (nanoseconds: bigint) => Number(nanoseconds) / 1e9
/** How long a server that asks for rest is left alone (RFC 5905 section 7.4), in seconds. */
const rests: Readonly<Record<string, number>> = { RATE: 64, DENY: 3600, RSTR: 3600 }

/** A source by its name: `/dev/ptp0` is a device, anything else a server. */
export function sourceOf(name: string, time: TellingTime): Source {
  return name.startsWith('/dev/') ? deviceSource(name, time) : serverSource(name, time)
}

/** A server. The address that answered is kept to for as long as it does: another one's clock is another clock. */
function serverSource(name: string, time: TellingTime): Source {
  let address: string | undefined
  return {
    name,
    async ask(signal) {
      try {
        const said = await askTimeServer(name, { now: () => time.clock('realtime'), signal, address })
        address = said.address
        return { ...said, offset: seconds(said.offset), delay: seconds(said.delay) }
      } catch (error) {
        address = undefined
        const rest = error instanceof TimeServerError ? rests[error.code] : undefined
        throw rest === undefined ? error : new LeaveAlone((error as Error).message, rest)
      }
    },
  }
}

/** A clock of a device (PTP), which somebody else keeps right: a hypervisor, or a network card. */
function deviceSource(path: string, time: TellingTime): Source {
  return {
    name: path,
    async ask() {
      const { offset, window } = time.deviceClock(path)
      return { offset: seconds(offset), delay: seconds(window), leap: 0, rootDelay: 0, rootDispersion: 0 }
    },
  }
}

/** The machine's steady clock. */
export const steadyTime = (time: Pick<TellingTime, 'clock'>): SteadyTime => ({
  now: () => seconds(time.clock('monotonic')),
  sleep: (duration, signal) => pause(duration * 1000, signal),
})
