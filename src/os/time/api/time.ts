import { type Method, readers, unary } from '../../../rpc/server/method.ts'
import { callerPlace, Places } from '../../../rpc/server/places.ts'
import { RpcError } from '../../../rpc/status.ts'
import type { Kernel } from '../../kernel.ts'
import { TimeServerStatus } from '../../network/resources/time-server.ts'
import { queryTimeServer, TimeServerError } from '../time-server.ts'

/** Callers choose which server is queried, so the queries of each caller are limited. */
const checks = new Places('time checks', { each: 8, all: 64, time: 30_000 })

const second = 1_000_000_000n
const statuses = { address: 'InvalidArgument', timeout: 'DeadlineExceeded', refused: 'Unavailable', answer: 'Unavailable' } as const

/** The node's clock beside that of a time server: a configured one, or one that the caller names. */
export function timeMethods({ time }: { time: Pick<Kernel['time'], 'clock'> }): Method[] {
  const now = () => time.clock('realtime')

  /** Queries the servers in turn until one answers. */
  const compare = async (servers: readonly string[], signal: AbortSignal) => {
    let last: unknown
    for (const server of servers) {
      try {
        const { offset } = await queryTimeServer(server, { now, signal })
        const local = now()
        return { messages: [{ server, localtime: timestamp(local), remotetime: timestamp(local + offset) }] }
      } catch (error) {
        if (signal.aborted) throw error
        last = error
      }
    }
    throw last instanceof TimeServerError ? new RpcError(statuses[last.reason], last.message) : last
  }

  return [
    unary('time.TimeService/Time', readers, (_, { store, signal }) => {
      const servers = store.list(TimeServerStatus).flatMap(({ spec }) => spec.timeServers)
      if (servers.length === 0)
        throw new RpcError('FailedPrecondition', 'time: no time servers are known: set machine.time.servers, or name one to check')
      return compare(servers, signal)
    }),
    unary('time.TimeService/TimeCheck', readers, ({ server }, context) => {
      if (server === '') throw new RpcError('InvalidArgument', 'time check: name a time server')
      return checks.run(callerPlace(context), context.signal, (signal) => compare([server], signal))
    }),
  ]
}

function timestamp(nanoseconds: bigint): { seconds: number; nanos: number } {
  return { seconds: Number(nanoseconds / second), nanos: Number(nanoseconds % second) }
}
