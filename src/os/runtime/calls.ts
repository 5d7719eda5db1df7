import type { AdmittedCall, CallObserver } from '../../rpc/server/call.ts'
import type { StatusName } from '../../rpc/status.ts'
import type { AuditLog } from './audit/audit-log.ts'
import { CallCounts } from './metrics/call-counts.ts'

/** What is kept of the calls of the machine API: their audit log and their counts. */
export class Calls implements CallObserver {
  readonly counts = new CallCounts()

  constructor(readonly audit: AuditLog) {}

  began(call: AdmittedCall): void {
    this.counts.began(call)
  }

  ended(call: AdmittedCall, status: StatusName | 'OK', milliseconds: number): void {
    this.counts.ended(call, status, milliseconds)
    this.audit.ended(call, status, milliseconds)
  }
}
