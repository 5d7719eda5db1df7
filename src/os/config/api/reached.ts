import { background } from '../../../cosi/background.ts'
import type { Logger } from '../../../cosi/log.ts'
import type { CallObserver } from '../../../rpc/server/call.ts'
import type { ConfigApply } from '../apply/config-apply.ts'
import { addressOf, authorityOf, connectionAge } from './caller.ts'

/** Notes for each accepted call through apid whether the machine is reached after a change on trial. */
export const observeCalls =
  (service: Pick<ConfigApply, 'state' | 'reached' | 'letIn'>, log: Logger): CallObserver['ended'] =>
  ({ metadata, roles }, status) => {
    if (service.state.state !== 'connectivity' || roles.size === 0 || status === 'PermissionDenied') return
    const authority = authorityOf({ metadata })
    if (authority !== undefined) service.letIn(authority)
    const age = connectionAge({ metadata })
    if (age !== undefined) background(() => service.reached(age, addressOf({ metadata }) ?? ''), log, 'confirmation by a call failed')
  }
