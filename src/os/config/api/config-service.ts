import { type Context, type Method, unary } from '../../../rpc/server/method.ts'
import { RpcError } from '../../../rpc/status.ts'
import type { Applied, ConfigDesk } from '../desk.ts'
import { MachineConfig } from '../resources/machine-config.ts'
import { digest } from '../trial.ts'
import { callerOf } from './caller.ts'
import { atDesk, milliseconds, modeOf } from './mode.ts'

/** Configurations over time: applied with a way back, confirmed, listed, shown and restored. */
export const configMethods = (desk: ConfigDesk): Method[] => [
  unary('ichor.v1.ConfigService/Apply', ['os:admin', 'os:reader'], (request, context) => {
    if (!desk.inMaintenance && !context.roles.has('os:admin')) throw new RpcError('PermissionDenied', 'not authorized')
    return atDesk(async () => answer(desk, await desk.apply(request.data, modeOf(request.mode), options(request, context)), request.dryRun))
  }),
  unary('ichor.v1.ConfigService/Restore', ['os:admin'], (request, context) =>
    atDesk(async () => answer(desk, await desk.restore(request.id, modeOf(request.mode), options(request, context)), request.dryRun)),
  ),
  unary('ichor.v1.ConfigService/Confirm', ['os:admin'], () => atDesk(async () => ({ messages: [{ id: await desk.confirm() }] }))),
  unary('ichor.v1.ConfigService/Show', ['os:admin'], ({ id }) =>
    atDesk(() => ({ messages: [{ data: new TextEncoder().encode(desk.text(id)) }] })),
  ),
  unary('ichor.v1.ConfigService/History', ['os:admin', 'os:operator', 'os:reader'], (_, { store }) => {
    const active = store.get(MachineConfig, 'v1alpha1')?.spec
    const kept = store.get(MachineConfig, 'persistent')?.spec
    const entries = desk.history.list()
    // Of several with the same text the last is the one that was applied.
    const last = (wanted: string | undefined) => entries.findLast(({ text }) => text === wanted)?.id
    const [inForce, atStart] = [last(active), last(kept)]
    const told = entries.map(({ text, by, time, decided, ...entry }) => ({
      ...entry,
      ...by,
      time: timestamp(time),
      decided: decided === undefined ? undefined : timestamp(decided),
      sha256: digest(text),
      active: entry.id === inForce,
      kept: entry.id === atStart,
    }))
    return { messages: [{ entries: told.reverse() }] }
  }),
]

type Timing = { dryRun: boolean; tryTimeout?: { seconds: number; nanos: number }; confirmWithin?: { seconds: number; nanos: number } }

const options = ({ dryRun, tryTimeout, confirmWithin }: Timing, context: Context) => ({
  dryRun,
  trialFor: milliseconds(tryTimeout),
  confirmWithin: milliseconds(confirmWithin),
  by: callerOf(context),
})

function answer(desk: ConfigDesk, { mode, warnings, details, id, confirmBy }: Applied, dryRun: boolean) {
  if (mode === 'reboot' && !dryRun) desk.reboot()
  const by = confirmBy && { confirmBy: timestamp(confirmBy.toISOString()) }
  return { messages: [{ warnings: [...warnings], details, id, ...by }] }
}

function timestamp(time: string): { seconds: number; nanos: number } {
  const at = Date.parse(time)
  return { seconds: Math.floor(at / 1000), nanos: (at % 1000) * 1e6 }
}
