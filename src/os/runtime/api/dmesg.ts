import { serverStream } from '../../../rpc/server/method.ts'
import type { Kernel } from '../../kernel.ts'

const facilities = 'kern user mail daemon auth syslog lpr news uucp cron authpriv ftp'.split(' ')
const severities = 'emerg alert crit err warning notice info debug'.split(' ')

/** The kernel's log, a record a line: who, how bad, when, what. */
export const dmesg = ({ kmsg, time }: Pick<Kernel, 'kmsg' | 'time'>) =>
  serverStream('machine.MachineService/Dmesg', ['os:admin', 'os:operator', 'os:reader'], async function* ({ follow, tail }, { signal }) {
    // Records carry time since boot; the sum with the moment of boot is only right while the clock does not jump, so it is taken anew.
    const bootedAt = Date.now() - Number(time.clock('boottime') / 1_000_000n)
    for await (const record of kmsg.readKernelLog({ follow, tail, signal })) {
      const at = new Date(bootedAt + record.timestamp / 1000).toISOString()
      const facility = facilities[record.facility] ?? `local${record.facility - 16}`
      yield {
        bytes: Buffer.from(`${facility}: ${severities[record.severity] ?? record.severity.toString()}: [${at}]: ${record.message}\n`),
      }
    }
  })
