/** Runs an upgrade up to the reboot: checks the release, writes it into the other slot, and puts it on trial. */
import type { StatusName } from '../../../rpc/status.ts'
import { apiStatus } from '../../../wire/api-status.ts'
import { NodeStatus } from '../../k8s/resources/node.ts'
import { Nodename } from '../../k8s/resources/nodename.ts'
import { cannotOpen } from '../release/encryption.ts'
import { findRelease, forgetRelease } from '../release/find-release.ts'
import { filesFor, type Release, slotRelease, verifyFiles } from '../release/release.ts'
import { withBootLoader } from '../slots/boot-disk.ts'
import type { Slot } from '../slots/slot.ts'
import { otherSlot } from '../slots/slot.ts'
import type { Writing } from '../system-changes.ts'
import { claimant, dropClaim, takeClaim } from './claim.ts'
import { planUpgrade, type UpgradePlan, type Upgrading } from './prepare.ts'
import { hasEtcd } from './quorum.ts'
import { failuresOf, recordTrial, type Trial } from './records.ts'
import { isReachable } from './trial.ts'

/** The upgrade was refused; nothing was changed. */
export class UpgradeRefused extends Error {
  override name = 'UpgradeRefused'

  get [apiStatus](): StatusName {
    return 'FailedPrecondition'
  }
}

/** Options of an upgrade. */
export interface UpgradeOptions {
  readonly force: boolean
  /** The caller is an administrator, not an anonymous caller in maintenance mode. */
  readonly trusted: boolean
  readonly inMemory?: boolean
  readonly signal: AbortSignal
  readonly report: (message: string) => void
}

/** A release written to its slot, and the steps that begin its trial. */
export interface WrittenUpgrade {
  readonly slot: Slot
  readonly release: Release
  /** Records the present health in META. */
  announce(): Promise<void>
  /** Puts the slot on trial for the next boot; announces it first if that was not done. */
  begin(): Promise<void>
  /** Cancels the trial. */
  withdraw(): Promise<void>
}

/** Finds a release and checks it. */
export async function examine(
  machine: Upgrading,
  reference: string,
  options: UpgradeOptions,
): Promise<{ release: Release; plan: UpgradePlan }> {
  const release = await findRelease(machine, reference, options)
  const plan = await withBootLoader(machine, async (loader, running) =>
    planUpgrade(machine, release, { ...(await loader.state()), kind: loader.kind }, running, options),
  )
  return { release, plan }
}

/** Verifies a release completely and writes it; the machine keeps running. Throws UpgradeRefused or ReleaseError if nothing was changed. */
export function writeUpgrade(machine: Upgrading, reference: string, options: UpgradeOptions): Promise<WrittenUpgrade> {
  return machine.systemChanges.exclusively('upgrade', () => writing(machine, reference, options), inProgress)
}

const inProgress = (running: Writing) => new UpgradeRefused(`another ${running} of this node is in progress: wait until it is done`)

async function writing(machine: Upgrading, reference: string, options: UpgradeOptions): Promise<WrittenUpgrade> {
  const { report, signal } = options
  const { release, plan } = await examine(machine, reference, options)
  const against = plan.findings.filter(({ verdict }) => verdict === 'refused')
  if (against.length > 0)
    throw new UpgradeRefused(`${against.map(({ subject, text }) => `${subject}: ${text}`).join('; ')}; nothing was changed`)
  for (const { subject, text } of plan.findings.filter(({ verdict }) => verdict === 'note')) report(`${subject}: ${text}`)
  const claimed = hasEtcd(machine)
  if (claimed) {
    const holder = await takeClaim(machine)
    if (holder) throw new UpgradeRefused(`control plane "${holder}" is upgrading: wait until it is done; nothing was changed`)
  }
  try {
    await withBootLoader(machine, async (loader) => {
      await verifyFiles(release, filesFor(loader.kind), (name) => report(`checking ${name}`))
      signal.throwIfAborted()
      report(`writing ${release.manifest.version} to slot ${plan.target.toUpperCase()}`)
      await loader.write(plan.target, await slotRelease(release, plan.parameters))
    })
  } catch (error) {
    if (claimed) await dropClaim(machine, claimant(machine)).catch(() => {}) // it expires
    throw error
  }
  await forgetRelease(machine, reference)
  const { version } = release.manifest
  let announced = false
  const announce = async () => {
    await recordTrial(machine, {
      ...standing(machine),
      slot: plan.target,
      version,
      image: release.image,
      ...(claimed && { claim: claimant(machine) }),
    })
    announced = true
  }
  return {
    slot: plan.target,
    release,
    announce,
    async begin() {
      if (!announced) await announce()
      await withBootLoader(machine, async (loader) => {
        await loader.try(plan.target)
        await loader.renewal
          ?.try()
          .catch((error) => machine.log.warn('ask the firmware for the new boot loader failed, the old one stays', { error }))
      })
      report(`slot ${plan.target.toUpperCase()} is on trial from the next boot`)
    },
    async withdraw() {
      await withBootLoader(machine, (loader) => loader.giveUp())
      await recordTrial(machine, undefined)
      if (claimed) await dropClaim(machine, claimant(machine)).catch(() => {}) // it expires
    },
  }
}

/** Rolls back: puts the other slot on trial. Throws UpgradeRefused. */
export async function beginRollback(machine: Upgrading): Promise<{ slot: Slot; version: string }> {
  const { writing: running } = machine.systemChanges
  if (running) throw inProgress(running)
  return withBootLoader(machine, async (loader, running) => {
    const state = await loader.state()
    const slot = otherSlot(running ?? state.good ?? 'a')
    const content = state.slots[slot]
    if (!content) throw new UpgradeRefused(`slot ${slot.toUpperCase()} holds no release to roll back to`)
    const failed = failuresOf(machine).find(({ image }) => image === content.image)
    if (failed)
      throw new UpgradeRefused(
        `slot ${slot.toUpperCase()} holds ${content.version}, which failed on this node at ${failed.at}: ${failed.why}`,
      )
    if (state.trial && state.trial.slot === running) {
      // The running release is not good yet: the previous one is, and boots without a trial.
      await loader.giveUp()
      await recordTrial(machine, undefined)
    } else {
      const unopened = cannotOpen(machine, content.encryption)
      if (unopened)
        throw new UpgradeRefused(
          `slot ${slot.toUpperCase()} holds ${content.version}: ${unopened}; wipe them first, or name an image with "upgrade --force"`,
        )
      await recordTrial(machine, { ...standing(machine), slot, version: content.version, image: content.image })
      await loader.try(slot)
    }
    return { slot, version: content.version }
  })
}

/** The present health, which must be restored after the upgrade. */
function standing({ supervisor, store }: Pick<Upgrading, 'supervisor' | 'store'>): Pick<Trial, 'services' | 'nodeReady' | 'reachable'> {
  const name = store.get(Nodename, 'nodename')?.spec.nodename
  return {
    services: supervisor
      .list()
      .map(({ id }) => id)
      .filter((id) => supervisor.isUp(id)),
    reachable: isReachable({ store }),
    nodeReady: (name && store.get(NodeStatus, name)?.spec.nodeReady) || false,
  }
}
