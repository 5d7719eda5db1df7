import type { ServiceDefinition } from '../../../supervise/definition.ts'
import type { LogRing } from '../../../supervise/log-ring.ts'
import { task } from '../../../supervise/runner/task.ts'
import { DecodeError } from '../../../wire/decode-error.ts'
import { readAuditRecord } from '../../../wire/netlink/audit.ts'
import type { Machine } from '../../area.ts'

/** Records a second, and records that wait in the kernel: what is beyond is lost and counted. */
const limits = { rateLimit: 4096, backlogLimit: 8192 }

/** Milliseconds between looks at the count of lost records. */
const lossInterval = 60_000

/** Receives the records of the kernel's audit system, one each line; what was lost is one line as well. */
export const auditdService = ({ kernel: { audit } }: Pick<Machine, 'kernel'>): ServiceDefinition => ({
  id: 'auditd',
  dependsOn: ['machined'],
  runner: task('auditd', async ({ output, signal, clock }) => {
    const before = audit.auditStatus()
    const reader = audit.readAudit((datagram) => keepRecord(output, datagram))
    try {
      audit.setAudit({ enabled: true, ...limits })
      for (let known = before.lost; !signal.aborted; ) {
        await clock.sleep(lossInterval, signal)
        const { lost } = audit.auditStatus()
        if (lost > known) output.line(`${lost - known} records were lost`)
        known = lost
      }
    } finally {
      reader.close()
      if (!before.enabled) audit.setAudit({ enabled: false })
    }
  }),
  restart: 'always',
  cgroup: '/init',
})

/** Keeps a record as a line. */
export function keepRecord(output: Pick<LogRing, 'line'>, datagram: Uint8Array): void {
  try {
    const line = readAuditRecord(datagram)
    if (line !== undefined) output.line(line)
  } catch (error) {
    if (!(error instanceof DecodeError)) throw error // the kernel sends no message without a header
  }
}
