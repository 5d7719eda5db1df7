import type { AdmittedCall, CallObserver } from '../../rpc/server/call.ts'
import type { StatusName } from '../../rpc/status.ts'
import type { AuditLog } from './audit/audit-log.ts'
import { CallCounts } from './metrics/call-counts.ts'
import { CallSpans } from './traces/call-spans.ts'

/** Records of the machine API's calls: their audit log, their counts, and traces where enabled. */
export class Calls implements CallObserver {
  readonly counts = new CallCounts()
  readonly spans = new CallSpans()

  readonly #listeners: CallObserver['ended'][] = []

  constructor(readonly audit: AuditLog) {}

  /** Calls back whenever a call has ended. */
  onEnd(listener: CallObserver['ended']): void {
    this.#listeners.push(listener)
  }

  began(call: AdmittedCall): void {
    this.counts.began(call)
  }

  admitted(call: AdmittedCall): void {
    this.audit.admitted(call)
  }

  ended(call: AdmittedCall, status: StatusName | 'OK', milliseconds: number): void {
    this.counts.ended(call, status, milliseconds)
    this.audit.ended(call, status, milliseconds)
    this.spans.ended(call, status, milliseconds)
    for (const listener of this.#listeners) listener(call, status, milliseconds)
  }
}
