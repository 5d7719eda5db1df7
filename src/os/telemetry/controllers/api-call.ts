import { type Controller, defineController, exclusive } from '../../../cosi/controller.ts'
import type { AuditLog } from '../audit/audit-log.ts'
import { APICall } from '../resources/api-call.ts'

const digits = 9

/** The latest lines of the audit log, as resources. */
export const observeCalls = (audit: Pick<AuditLog, 'recent' | 'subscribe'>): Controller =>
  defineController({
    name: 'runtime.APICallController',
    inputs: {},
    outputs: { calls: exclusive(APICall) },
    start({ wake, signal }) {
      signal.addEventListener('abort', audit.subscribe(wake))
    },
    reconcile({ calls }) {
      for (const [number, { time, roles, milliseconds, ...record }] of audit.recent())
        calls.put(String(number).padStart(digits, '0'), {
          ...record,
          time: time.toISOString(),
          roles: [...roles],
          milliseconds: Math.round(milliseconds * 10) / 10,
        })
    },
  })
