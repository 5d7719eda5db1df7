/** What becomes of a release on trial: marked good when everything is as well as before, else given up, and the machine goes back. */
import { parameterValues, parseCommandLine } from '../../../wire/command-line.ts'
import type { Machine } from '../../area.ts'
import { metaTags } from '../../block/meta/meta.ts'
import { NodeStatus } from '../../k8s/resources/node.ts'
import { Nodename } from '../../k8s/resources/nodename.ts'
import { NodeAddress } from '../../network/resources/node-address.ts'
import { raiseFloor } from '../release/floor.ts'
import { startedFromDisk, withBootLoader } from '../slots/boot-disk.ts'
import { dropClaim } from './claim.ts'
import { forgetFailure, recordFailure, recordTrial, type Trial, trialOf } from './records.ts'

/** What watching a trial takes of the machine. */
export type Watching = Pick<Machine, 'clock' | 'kernel' | 'store' | 'supervisor' | 'log' | 'meta' | 'service' | 'version'>

/** How a trial ended; `none` when there was none. */
export type Outcome = 'none' | 'good' | 'back'

/** A release has so long to come up, in minutes; `ichor.trial-minutes=` on its command line says otherwise. */
const usualMinutes = 30
/** Everything must have been well for so long, in milliseconds. */
const usualRest = 10_000

/** Services without which nobody could repair anything. */
const least = ['machined', 'apid', 'containerd']

/** Watches the trial of this start to its end. `back` asks the caller to start the machine anew. */
export async function watchTrial(machine: Watching, signal: AbortSignal, rest = usualRest): Promise<Outcome> {
  if (!startedFromDisk(machine)) return 'none'
  const { state, running } = await withBootLoader(machine, async (loader, running) => ({ state: await loader.state(), running }))
  const record = trialOf(machine)
  if (!state.trial) {
    // It never began, or it was given up and the failure is remembered already.
    if (record) await ended(machine, record)
    await raiseFloor(machine, machine.version.tag)
    return 'none'
  }
  const { slot } = state.trial
  const content = state.slots[slot]
  const trial: Trial =
    record?.slot === slot
      ? record
      : { slot, version: content?.version ?? '', image: content?.image ?? '', services: [], nodeReady: false, reachable: false }
  if (running !== slot) {
    const why = state.trial.left === 0 ? 'it did not come up in any of its starts' : 'the boot loader could not start it'
    machine.log.error('an upgrade did not come up, the machine is back', { version: trial.version, why })
    await withBootLoader(machine, (loader) => loader.giveUp())
    await recordFailure(machine, { version: trial.version, image: trial.image, why })
    await ended(machine, trial)
    return 'none'
  }
  const minutes = trialMinutes(machine)
  machine.log.info('this release is on trial', { version: trial.version, slot: slot.toUpperCase(), minutes })
  const unmet = await untilWell(machine, trial, { limit: minutes * 60_000, rest }, signal)
  if (unmet.length === 0) {
    await withBootLoader(machine, (loader) => loader.keep(slot))
    machine.log.info('this release has proven itself', { version: trial.version, slot: slot.toUpperCase() })
    await forgetFailure(machine, trial.image)
    await raiseFloor(machine, trial.version)
    await ended(machine, trial)
    return 'good'
  }
  const why = `not well within ${minutes} minutes: ${unmet.join(', ')}`
  machine.log.error('this release did not prove itself, the machine goes back', { version: trial.version, why })
  await recordFailure(machine, { version: trial.version, image: trial.image, why })
  await withBootLoader(machine, (loader) => loader.giveUp())
  return 'back'
}

/** What of a trial is not as well as it was before. */
export function notWell(
  { store, supervisor, service }: Pick<Watching, 'store' | 'supervisor' | 'service'>,
  trial: Pick<Trial, 'services' | 'nodeReady' | 'reachable'>,
): string[] {
  const wanted = [...new Set([...least, ...trial.services])].filter((id) => supervisor.get(id) !== undefined || isKnown(service, id))
  const down = wanted.filter((id) => !supervisor.isUp(id))
  const name = store.get(Nodename, 'nodename')?.spec.nodename
  const ready = !trial.nodeReady || (name !== undefined && store.get(NodeStatus, name)?.spec.nodeReady === true)
  return [
    ...down.map((id) => `service ${id}`),
    ...(trial.reachable && !isReachable({ store }) ? ['the machine has no address'] : []),
    ...(ready ? [] : ['the node is not ready in Kubernetes']),
  ]
}

/** Whether the machine has an address besides those that only it knows: its API may be well and nobody there to ask it. */
export function isReachable({ store }: Pick<Watching, 'store'>): boolean {
  const addresses = store.get(NodeAddress, 'current')?.spec.addresses ?? []
  return addresses.some((address) => !/^(127\.|::1\/|169\.254\.|fe80:)/.test(address))
}

/** A later release may have given a service up. */
function isKnown(service: Watching['service'], id: string): boolean {
  try {
    return service(id) !== undefined
  } catch {
    return false
  }
}

/** Waits until all is well and stays so for a while; what is not, when time is up. */
async function untilWell(
  machine: Watching,
  trial: Trial,
  { limit, rest }: { limit: number; rest: number },
  signal: AbortSignal,
): Promise<string[]> {
  const { supervisor, store, clock } = machine
  const end = clock.deadline(limit)
  let since: number | undefined
  for (;;) {
    const unmet = notWell(machine, trial)
    const now = clock.elapsed()
    if (unmet.length > 0) since = undefined
    else since ??= now
    if (since !== undefined && now - since >= rest) return []
    if (end.over) return unmet.length > 0 ? unmet : ['not for long enough']
    await changed([supervisor, store], since === undefined ? end.left : rest - (now - since), signal)
  }
}

/** Until a service, the node's status or an address changes, or so many milliseconds have passed. */
async function changed(
  [supervisor, store]: [Watching['supervisor'], Watching['store']],
  milliseconds: number,
  signal: AbortSignal,
): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  const timer = setTimeout(resolve, Math.min(milliseconds, 60_000))
  const stops = [
    supervisor.subscribe(() => resolve()),
    store.subscribe(NodeStatus, () => resolve()),
    store.subscribe(NodeAddress, () => resolve()),
  ]
  signal.addEventListener('abort', () => resolve(), { once: true })
  await promise.finally(() => {
    clearTimeout(timer)
    for (const stop of stops) stop()
  })
  signal.throwIfAborted()
}

function trialMinutes({ kernel: { files } }: Pick<Watching, 'kernel'>): number {
  const told = Number(parameterValues(parseCommandLine(files.readTextIfThere('/proc/cmdline') ?? ''), 'ichor.trial-minutes').at(-1))
  return Number.isFinite(told) && told > 0 ? told : usualMinutes
}

/** Nothing of the trial is left; the cluster's claim goes when etcd is there to take it. */
async function ended(machine: Watching, { claim }: Trial): Promise<void> {
  const { meta, supervisor } = machine
  for (const tag of [metaTags.stagedImage, metaTags.stagedOptions]) meta.delete(tag)
  await recordTrial(machine, undefined)
  await meta.flush()
  if (!claim) return
  supervisor
    .until('etcd', 'up', AbortSignal.timeout(60 * 60_000))
    .then(() => dropClaim(machine, claim))
    .catch((error) => machine.log.warn('the claim to upgrade in etcd ends by itself within the hour', { error }))
}
