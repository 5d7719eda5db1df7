import type { ServiceDefinition } from '../../../supervise/definition.ts'
import type { LogRing } from '../../../supervise/log-ring.ts'
import { task } from '../../../supervise/runner/task.ts'
import { parseSyslog } from '../../../wire/syslog.ts'
import type { Machine } from '../../area.ts'

/** The syslog socket of the machine. */
const socketPath = '/dev/log'

/** Receives messages of programs that only support syslog; they are kept in memory, one JSON object per line. */
export const syslogdService = ({ kernel }: Pick<Machine, 'kernel'>): ServiceDefinition => ({
  id: 'syslogd',
  dependsOn: ['machined'],
  runner: task('syslogd', async ({ output, signal, clock }) => {
    const socket = kernel.socket.listenDatagrams(socketPath, (datagram) => keep(output, datagram, clock.now()))
    await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()))
    socket.close()
  }),
  restart: 'never',
  cgroup: '/init',
})

/** One message as a line; absent fields are left out, the time of arrival is added. */
export function keep(output: Pick<LogRing, 'line'>, datagram: Uint8Array, received: Date): void {
  output.line(JSON.stringify({ received: received.toISOString(), ...parseSyslog(datagram) }))
}
