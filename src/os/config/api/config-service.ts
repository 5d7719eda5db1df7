import { toDuration, toTimestamp } from '../../../rpc/proto-time.ts'
import { type Context, inMaintenanceOr, type Method, readers, unary } from '../../../rpc/server/method.ts'
import type { Applied, ConfigApply } from '../apply/config-apply.ts'
import { settleTime } from '../apply/reach.ts'
import { MachineConfig } from '../resources/machine-config.ts'
import { digest } from '../trial/marker.ts'
import { addressOf, callerOf, connectionAge } from './caller.ts'
import { milliseconds, modeOf } from './mode.ts'

/** The configuration history: applied on trial, confirmed, listed, shown and restored. */
export const configMethods = (service: ConfigApply): Method[] => [
  unary('ichor.v1.ConfigService/Apply', inMaintenanceOr(['os:admin']), async (request, context) =>
    answer(await service.apply(request.data, modeOf(request.mode), options(request, context))),
  ),
  unary('ichor.v1.ConfigService/Restore', ['os:admin'], async (request, context) =>
    answer(await service.restore(request.id, modeOf(request.mode), options(request, context))),
  ),
  unary('ichor.v1.ConfigService/Confirm', ['os:admin'], async (_, context) => ({
    messages: [{ id: await service.confirm(connectionAge(context)) }],
  })),
  unary('ichor.v1.ConfigService/Show', ['os:admin'], ({ id }) => ({
    messages: [{ data: new TextEncoder().encode(service.text(id)) }],
  })),
  // Readers see who applied which configuration and when, as in explanations, but no text.
  unary('ichor.v1.ConfigService/History', readers, (_, { store }) => {
    const active = store.get(MachineConfig, 'v1alpha1')?.spec
    const kept = store.get(MachineConfig, 'persistent')?.spec
    const entries = service.history.list()
    // Of several with the same text the last is the one that was applied.
    const last = (wanted: string | undefined) => entries.findLast(({ text }) => text === wanted)?.id
    const [inForce, atStart] = [last(active), last(kept)]
    const listed = entries.map(({ text, by, time, decided, ...entry }) => ({
      ...entry,
      ...by,
      time: toTimestamp(new Date(time)),
      decided: decided === undefined ? undefined : toTimestamp(new Date(decided)),
      sha256: digest(text),
      active: entry.id === inForce,
      kept: entry.id === atStart,
    }))
    return { messages: [{ entries: listed.reverse() }] }
  }),
]

type Timing = {
  dryRun: boolean
  force: boolean
  noConfirm: boolean
  reconnects: boolean
  tryTimeout?: { seconds: number; nanos: number }
  confirmWithin?: { seconds: number; nanos: number }
}

const options = ({ dryRun, force, noConfirm, reconnects, tryTimeout, confirmWithin }: Timing, context: Context) => ({
  dryRun,
  force,
  noConfirm,
  reconnects,
  from: addressOf(context),
  age: connectionAge(context),
  trialFor: milliseconds(tryTimeout),
  confirmWithin: milliseconds(confirmWithin),
  by: callerOf(context),
})

function answer({ warnings, details, id, confirmBy, reachWithin }: Applied) {
  const by = confirmBy && { confirmBy: toTimestamp(confirmBy) }
  const within = reachWithin === undefined ? {} : { reachWithin: toDuration(reachWithin), reachAfter: toDuration(settleTime) }
  return { messages: [{ warnings: [...warnings], details, id, ...by, ...within }] }
}
