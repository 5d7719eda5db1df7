/** Decides a trial: a release is marked good once the machine is as healthy as before; otherwise it is rolled back. */
import { parameterValues, parseCommandLine } from '../../../wire/command-line.ts'
import type { Machine } from '../../area.ts'
import { metaTags } from '../../block/public.ts'
import { NodeStatus } from '../../k8s/resources/node.ts'
import { Nodename } from '../../k8s/resources/nodename.ts'
import { NodeAddress } from '../../network/resources/node-address.ts'
import { raiseFloor } from '../release/floor.ts'
import { startedFromDisk, withBootLoader } from '../slots/boot-disk.ts'
import { dropClaim } from './claim.ts'
import { forgetFailure, recordFailure, recordTrial, type Trial, trialOf } from './records.ts'

/** Dependencies for watching a trial. */
export type TrialDependencies = Pick<
  Machine,
  'clock' | 'kernel' | 'store' | 'supervisor' | 'log' | 'meta' | 'service' | 'version' | 'systemChanges'
>

/** The outcome of a trial; `none` if there was none. */
export type Outcome = 'none' | 'good' | 'back'

/** Default time limit of a trial in minutes; `ichor.trial-minutes=` on the command line overrides it. */
const usualMinutes = 30
/** How long everything must stay healthy, in milliseconds. */
const defaultSettleTime = 10_000

/** Services required for repairing a machine. */
const least = ['machined', 'apid', 'containerd']

/** Watches a trial to its end. After `back` the caller must reboot the machine. */
export async function watchTrial(machine: TrialDependencies, signal: AbortSignal, settleTime = defaultSettleTime): Promise<Outcome> {
  if (!startedFromDisk(machine)) return 'none'
  const { state, running } = await withBootLoader(machine, async (loader, running) => ({ state: await loader.state(), running }))
  const record = trialOf(machine)
  if (!state.trial) {
    // The trial never began, or it was ended and its failure is recorded already.
    if (record) await ended(machine, record)
    await raiseFloor(machine, machine.version.tag)
    await settleLoader(machine)
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
    machine.log.error('upgrade failed, rolled back', { version: trial.version, why })
    await withBootLoader(machine, (loader) => loader.giveUp())
    await recordFailure(machine, { version: trial.version, image: trial.image, why })
    await ended(machine, trial)
    return 'none'
  }
  const minutes = trialMinutes(machine)
  machine.log.info('release is on trial', { version: trial.version, slot: slot.toUpperCase(), minutes })
  const unmet = await untilHealthy(machine, trial, { limit: minutes * 60_000, settleTime }, signal)
  if (unmet.length === 0) {
    await withBootLoader(machine, (loader) => loader.keep(slot))
    machine.log.info('release marked good', { version: trial.version, slot: slot.toUpperCase() })
    await settleLoader(machine)
    await forgetFailure(machine, trial.image)
    await raiseFloor(machine, trial.version)
    await ended(machine, trial)
    return 'good'
  }
  const why = `not healthy within ${minutes} minutes: ${unmet.join(', ')}`
  machine.log.error('trial failed, rolling back', { version: trial.version, why })
  await recordFailure(machine, { version: trial.version, image: trial.image, why })
  await withBootLoader(machine, (loader) => loader.giveUp())
  return 'back'
}

/** Decides about a new boot loader. The machine starts without it, so a failure is not one of the release. */
async function settleLoader(machine: TrialDependencies): Promise<void> {
  try {
    const renewal = await withBootLoader(machine, async (loader) => loader.renewal?.settle())
    if (renewal === 'renewed') machine.log.info('boot loader renewed')
    else if (renewal === 'failed') machine.log.warn('the firmware did not start the new boot loader, the old one stays')
    else if (renewal === 'damaged') machine.log.warn('new boot loader is damaged on the disk, the old one stays')
    else if (renewal === 'foreign') machine.log.warn('boot loader was not installed by this system, it is not renewed')
    else if (renewal === 'no-room') machine.log.warn('no room for the new boot loader beside the old one, which stays')
  } catch (error) {
    machine.log.warn('renew boot loader failed, the old one stays', { error })
  }
}

/** The conditions that held before the upgrade and do not hold now. */
export function unmetConditions(
  { store, supervisor, service }: Pick<TrialDependencies, 'store' | 'supervisor' | 'service'>,
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

/** Whether the machine has an address beyond loopback and link-local ones; without one a healthy API is useless. */
export function isReachable({ store }: Pick<TrialDependencies, 'store'>): boolean {
  const addresses = store.get(NodeAddress, 'current')?.spec.addresses ?? []
  return addresses.some((address) => !/^(127\.|::1\/|169\.254\.|fe80:)/.test(address))
}

/** A later release may have removed a service. */
function isKnown(service: TrialDependencies['service'], id: string): boolean {
  try {
    return service(id) !== undefined
  } catch {
    return false
  }
}

/** Waits until everything is healthy and stays so for a while. Returns the unmet conditions on timeout. */
async function untilHealthy(
  machine: TrialDependencies,
  trial: Trial,
  { limit, settleTime }: { limit: number; settleTime: number },
  signal: AbortSignal,
): Promise<string[]> {
  const { supervisor, store, clock } = machine
  const end = clock.deadline(limit)
  let since: number | undefined
  for (;;) {
    const unmet = unmetConditions(machine, trial)
    const now = clock.elapsed()
    if (unmet.length > 0) since = undefined
    else since ??= now
    if (since !== undefined && now - since >= settleTime) return []
    if (end.over) return unmet.length > 0 ? unmet : ['not for long enough']
    await changed([supervisor, store], since === undefined ? end.left : settleTime - (now - since), signal)
  }
}

/** Resolves when a service, the node status or an address changes, or after the given milliseconds. */
async function changed(
  [supervisor, store]: [TrialDependencies['supervisor'], TrialDependencies['store']],
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

function trialMinutes({ kernel: { files } }: Pick<TrialDependencies, 'kernel'>): number {
  const parameter = Number(parameterValues(parseCommandLine(files.readTextIfThere('/proc/cmdline') ?? ''), 'ichor.trial-minutes').at(-1))
  return Number.isFinite(parameter) && parameter > 0 ? parameter : usualMinutes
}

/** Removes the trial record; the claim is released when etcd is available. */
async function ended(machine: TrialDependencies, { claim }: Trial): Promise<void> {
  const { meta, supervisor } = machine
  for (const tag of [metaTags.stagedImage, metaTags.stagedOptions]) meta.delete(tag)
  await recordTrial(machine, undefined)
  await meta.flush()
  if (!claim) return
  supervisor
    .until('etcd', 'up', AbortSignal.timeout(60 * 60_000))
    .then(() => dropClaim(machine, claim))
    .catch((error) => machine.log.warn('release upgrade claim failed, it expires within the hour', { error }))
}
