/** Preflight of an upgrade: what it would do, and what prevents it. Nothing is written. */
import type { Machine } from '../../area.ts'
import { declared } from '../../config/public.ts'
import { MachineConfig } from '../../config/resources/machine-config.ts'
import { isRegistered } from '../../k8s/public.ts'
import { installSettings } from '../install/install-system.ts'
import { ownParameters } from '../install/layout.ts'
import { cannotOpen } from '../release/encryption.ts'
import { tooOld } from '../release/floor.ts'
import { filesFor, mergeParameters, type Release, slotRelease } from '../release/release.ts'
import type { BootState, Slot } from '../slots/slot.ts'
import { otherSlot } from '../slots/slot.ts'
import { hasEtcd, quorumWithoutSelf } from './quorum.ts'
import { failuresOf } from './records.ts'

/** One finding: fine, a note, or a reason to refuse. */
export interface Finding {
  readonly subject: string
  readonly text: string
  readonly verdict: 'fine' | 'note' | 'refused'
}

/** What an upgrade would do. */
export interface UpgradePlan {
  readonly target: Slot
  readonly parameters: readonly string[]
  readonly findings: readonly Finding[]
}

/** The dependencies of an upgrade. */
export type Upgrading = Pick<Machine, 'kernel' | 'store' | 'supervisor' | 'version' | 'log' | 'meta' | 'service' | 'systemChanges'>

/** Number of Kubernetes minor versions a release supports, including its own. */
const servedMinors = 6

/** The slot to write: never the one last marked good, nor the running one. */
export function targetSlot({ good }: Pick<BootState, 'good'>, running: Slot | undefined): Slot {
  return otherSlot(good ?? running ?? 'a')
}

/** Checks a release against the boot loader's state and the cluster. */
export async function planUpgrade(
  machine: Upgrading,
  release: Release,
  state: BootState & { kind: 'systemd-boot' | 'grub' },
  running: Slot | undefined,
  { force, trusted }: { force: boolean; trusted: boolean },
): Promise<UpgradePlan> {
  const { version, kubernetes, kernel } = release.manifest
  const target = targetSlot(state, running)
  const fine = (subject: string, text: string): Finding => ({ subject, text, verdict: 'fine' })
  const note = (subject: string, text: string): Finding => ({ subject, text, verdict: 'note' })
  const against = (subject: string, text: string): Finding => ({
    subject,
    text: force ? `${text} (forced)` : text,
    verdict: force ? 'note' : 'refused',
  })
  const findings: Finding[] = [
    fine('image', `${version} (${release.image}) from ${release.origin}, kernel ${kernel}`),
    fine('signature', 'made with the key that this system trusts'),
    fine(
      'slot',
      `${target.toUpperCase()} is written, ${(state.good ?? otherSlot(target)).toUpperCase()} stays as it is; ${state.kind} counts the starts`,
    ),
  ]
  const missing = filesFor(state.kind).filter((name) => !release.manifest.files.some((file) => file.name === name))
  if (missing.length > 0) findings.push({ subject: 'image', text: `it has no ${missing.join(', ')}`, verdict: 'refused' })
  if (state.trial && running === state.trial.slot)
    findings.push({ subject: 'slot', text: 'the running release is itself on trial: wait until it is marked good', verdict: 'refused' })
  if (running && state.slots[running]?.image === release.image) findings.push(note('image', 'this image is already running'))
  const old = tooOld(machine, version, { trusted })
  if (old && trusted) findings.push(against('release', `${old}: use --force to install it anyway`))
  else if (old) findings.push({ subject: 'release', text: old, verdict: 'refused' })
  const unopened = cannotOpen(machine, release.manifest.encryption)
  if (unopened) findings.push(against('encryption', `${version}: ${unopened}: use --force to try it anyway`))
  const failed = failuresOf(machine).find(({ image }) => image === release.image)
  if (failed) findings.push(against('history', `it failed on this node at ${failed.at}: ${failed.why}`))
  const parameters = ownParameters(
    machine.kernel.files.readTextIfThere('/proc/cmdline') ?? '',
    installSettings(machine).extraKernelArgs ?? [],
  )
  const { commandLine } = await slotRelease(release)
  findings.push(fine('kernel arguments', mergeParameters(commandLine, parameters)))
  findings.push(
    ...kubernetesFindings(machine, kubernetes).map((finding) =>
      finding.verdict === 'refused' ? against(finding.subject, finding.text) : finding,
    ),
  )
  if (hasEtcd(machine)) {
    const { holds, text } = await quorumWithoutSelf(machine, 'away')
    findings.push(holds ? fine('etcd', text) : against('etcd', text))
  }
  findings.push(
    isRegistered(machine)
      ? fine('drain', 'the node is cordoned and its pods are evicted before it reboots')
      : note('drain', 'the node is not registered in Kubernetes, there is nothing to drain'),
  )
  const services = machine.supervisor.list().filter(({ state }) => state === 'Running')
  findings.push(fine('restart', `the machine, with ${services.map(({ id }) => id).join(', ')}`))
  return { target, parameters, findings }
}

function kubernetesFindings({ store }: Pick<Machine, 'store'>, bundled: string): Finding[] {
  const image = String(declared(store.get(MachineConfig, 'v1alpha1'))?.machine.kubelet?.image ?? '')
  const used = /:v?(\d+)\.(\d+)\.(\d+)/.exec(image)
  const own = /^v?(\d+)\.(\d+)/.exec(bundled)
  if (!used || !own) return [{ subject: 'kubernetes', text: `the release carries ${bundled}`, verdict: 'fine' }]
  const [minor, latest] = [Number(used[2]), Number(own[2])]
  const version = `v${used[1]}.${used[2]}.${used[3]}`
  const fits = minor <= latest && minor > latest - servedMinors
  return [
    {
      subject: 'kubernetes',
      text: fits
        ? `this node uses ${version}, the release carries ${bundled}`
        : `this node uses ${version}, the release supports v1.${latest - servedMinors + 1} to v1.${latest}: upgrade Kubernetes first, or take another release`,
      verdict: fits ? 'fine' : 'refused',
    },
  ]
}
