import { ichor } from '../../../rpc/enums.ts'
import { type Context, clientStream, inMaintenanceOr, type Method, serverStream, unary } from '../../../rpc/server/method.ts'
import { RpcError, toRpcError } from '../../../rpc/status.ts'
import { messageOf } from '../../../wire/error-message.ts'
import type { Machine } from '../../area.ts'
import { metaTags, prettyBinarySize } from '../../block/public.ts'
import { inMaintenance } from '../../config/public.ts'
import { installOn, installSettings, isRefusal, releaseToInstall } from '../install/install-system.ts'
import { type InstallSettings, planInstall } from '../install/plan.ts'
import { isOwnRelease, releaseOfMedium } from '../release/find-release.ts'
import { tooOld } from '../release/floor.ts'
import { filesFor, type Release } from '../release/release.ts'
import { isUpload, Uploads } from '../release/uploads.ts'
import type { Phase } from '../sequencer.ts'
import { isInstalled } from '../slots/boot-disk.ts'
import { drain, end, leaveDisk, reboot, stopEverything, stopWorkload } from '../stop.ts'
import type { Finding } from '../upgrade/prepare.ts'
import { beginRollback, examine, type UpgradeOptions, type WrittenUpgrade, writeUpgrade } from '../upgrade/upgrade.ts'
import { beginSequence } from './begin.ts'
import { progressOf } from './progress.ts'

/** In maintenance mode anyone may install, just as anyone may apply a configuration; later only administrators. */
const access = inMaintenanceOr(['os:admin'])

const { FINE, NOTE, REFUSED } = ichor.v1.PlanItem.Verdict
const verdicts = { fine: FINE, note: NOTE, refused: REFUSED } as const

/** Uploads, inspects, installs, upgrades and rolls back releases. */
export const releaseMethods = (machine: Machine): Method[] => {
  const uploads = new Uploads(machine.kernel)
  return [
    clientStream('ichor.v1.ReleaseService/Send', access, async (requests) => {
      const onDisk = isInstalled(machine) && machine.supervisor.isUp('cri')
      return { imageName: await uploads.take(requests, { onDisk }).catch((error) => Promise.reject(toRpcError(error))) }
    }),

    serverStream('ichor.v1.ReleaseService/Plan', access, async function* (request, context) {
      let items: readonly Finding[] = []
      for await (const progress of progressOf(async (report) => {
        items =
          request.install || !isInstalled(machine)
            ? await installFindings(machine, requestedSettings(request), request.imageName, context, report)
            : await upgradeFindings(machine, request.imageName, context, options(report, context, request.force))
      }))
        yield { progress }
      yield { items: items.map(({ verdict, ...item }) => ({ ...item, verdict: verdicts[verdict] })) }
    }),

    serverStream('ichor.v1.ReleaseService/Upgrade', access, async function* ({ imageName, force, reboot: restart }, context) {
      for await (const message of upgrading(machine, imageName, context, force)) yield { message }
      if (restart) beginSequence(machine, inMaintenance(machine.store) ? 'maintenanceUpgrade' : 'reboot', reboot(machine))
    }),

    serverStream('ichor.v1.ReleaseService/Install', access, async function* (request, context) {
      for await (const message of installing(machine, requestedSettings(request), request.imageName, context)) yield { message }
      if (request.reboot) beginSequence(machine, 'reboot', reboot(machine))
    }),

    serverStream('machine.LifecycleService/Upgrade', ['os:admin'], async function* ({ source }, context) {
      for await (const message of upgrading(machine, source?.imageName ?? '', context, false)) yield { progress: { message } }
      yield { progress: { exitCode: 0 } }
    }),

    serverStream('machine.LifecycleService/Install', ['os:admin'], async function* ({ source, destination }, context) {
      for await (const message of installing(
        machine,
        requestedSettings({ disk: destination?.disk ?? '' }),
        source?.imageName ?? '',
        context,
      ))
        yield { progress: { message } }
      yield { progress: { exitCode: 0 } }
    }),

    unary('machine.MachineService/Upgrade', ['os:admin'], async ({ image, stage, force }, { roles }) => {
      requireInstalled(machine)
      if (!image) throw new RpcError('InvalidArgument', 'upgrade: no image is named')
      return { messages: [{ ack: 'Upgrade request received', actorId: await beginUpgrade(machine, image, roles, { stage, force }) }] }
    }),

    unary('machine.MachineService/Rollback', ['os:admin'], async () => {
      const { slot, version } = await beginRollback(machine).catch((error) => Promise.reject(toRpcError(error)))
      machine.log.info('rolling back', { version, slot: slot.toUpperCase() })
      beginSequence(machine, 'reboot', reboot(machine))
      return { messages: [{}] }
    }),
  ]
}

const options = (report: (message: string) => void, context: Pick<Context, 'roles' | 'signal'>, force = false): UpgradeOptions => ({
  report,
  signal: context.signal,
  force,
  trusted: isTrusted(context),
})

/** Writes the release and begins its trial. The caller restarts the machine. */
const upgrading = (machine: Machine, reference: string, context: Context, force: boolean) =>
  progressOf(async (report) => {
    requireInstalled(machine)
    if (!reference) throw new RpcError('InvalidArgument', 'upgrade: no image is named')
    const logged = (message: string) => {
      machine.log.info('upgrade', { step: message })
      report(message)
    }
    refuseRegistries(context, reference)
    const written = await writeUpgrade(machine, reference, options(logged, context, force))
    await written.begin()
    logged(`reboot to start ${written.release.manifest.version}`)
  })

/** Checked first, so that nothing is pulled for a machine that has no slot to write. */
function requireInstalled(machine: Machine): void {
  if (!isInstalled(machine))
    throw new RpcError('FailedPrecondition', 'upgrade: this machine runs from a medium: it is not installed, install it first')
}

/** Installs on a machine that is not installed. The caller restarts the machine. */
const installing = (machine: Machine, given: InstallSettings, image: string, context: Context) =>
  progressOf(async (report) => {
    const { signal } = context
    // Managers upgrade a machine whose installation ends with this code.
    if (isInstalled(machine)) throw new RpcError('AlreadyExists', 'install: this machine is already installed, upgrade it instead')
    const logged = (message: string) => {
      machine.log.info('install', { step: message })
      report(message)
    }
    await refuseForeign(machine, image, context)
    const settings = settingsOf(machine, given, image)
    await planInstall(machine, settings)
    await installOn(machine, settings, await chosenRelease(machine, settings, context, logged), { signal, report: logged })
  })

/** Writes the release and begins the sequence that restarts into it, at once or staged; returns the sequence's id. */
async function beginUpgrade(
  machine: Machine,
  image: string,
  roles: Context['roles'],
  { stage, force }: { stage: boolean; force: boolean },
): Promise<string> {
  const report = (step: string) => machine.log.info('upgrade', { step })
  const written = await writeUpgrade(machine, image, options(report, { roles, signal: AbortSignal.timeout(30 * 60_000) }, force)).catch(
    (error) => Promise.reject(toRpcError(error)),
  )
  const name = stage ? 'stageUpgrade' : inMaintenance(machine.store) ? 'maintenanceUpgrade' : 'upgrade'
  if (stage) {
    machine.meta.set(metaTags.stagedImage, image)
    machine.meta.set(metaTags.stagedOptions, JSON.stringify({ image, slot: written.slot }))
    await machine.meta.flush()
  }
  const phases =
    name === 'maintenanceUpgrade' ? upgradePhases(machine, written, []) : upgradePhases(machine, written, stage ? [] : drain(machine))
  try {
    return beginSequence(machine, name, phases, () => abandon(machine, written))
  } catch (error) {
    await written.withdraw()
    throw error
  }
}

/** Records the healthy services, drains the node, stops everything, and begins the trial only once the disk is no longer in use. */
function upgradePhases(machine: Machine, written: WrittenUpgrade, before: Phase[]): Phase[] {
  return [
    { name: 'saveMeta', tasks: [{ name: 'flushMeta', run: () => written.announce() }] },
    ...before,
    stopWorkload(machine, { strict: true }),
    ...leaveDisk(machine, { strict: true }),
    { name: 'upgrade', tasks: [{ name: 'upgrade', run: () => written.begin() }] },
    stopEverything(machine),
    end(machine, 'reboot'),
  ]
}

/** A failed upgrade changes nothing: the machine reboots into the present release. */
async function abandon(machine: Machine, written: WrittenUpgrade): Promise<void> {
  machine.log.error('upgrade aborted, rebooting into the present release')
  await written.withdraw().catch((error) => machine.log.error('withdraw trial failed', { error }))
  await machine.sequencer.run('reboot', reboot(machine, { force: true })).catch(() => machine.end('reboot'))
}

function requestedSettings({ disk = '', wipe = false }: { disk?: string; wipe?: boolean }): InstallSettings {
  return { ...(disk && { disk, diskSelector: undefined }), ...(wipe && { wipe }) }
}

/** The configured install settings, overridden by those of the request. */
function settingsOf(machine: Machine, given: InstallSettings, image: string): InstallSettings {
  return { ...installSettings(machine), ...given, ...(image && { image }) }
}

/** Anyone may call a machine in maintenance mode, but only administrators may make it connect elsewhere or fill its memory. */
const isTrusted = ({ roles }: Pick<Context, 'roles'>): boolean => roles.has('os:admin')

function refuseRegistries(context: Context, reference: string): void {
  if (isTrusted(context) || isUpload(reference)) return
  const what = 'in maintenance mode images are not pulled for callers without a certificate'
  throw new RpcError('PermissionDenied', `${what}: send the image itself (--image ./FILE.tar), or take the release of the medium`)
}

/** The release of the boot medium may be installed by any caller. */
async function refuseForeign(machine: Machine, named: string, context: Context): Promise<void> {
  const ofMedium = isOwnRelease(machine, named) && (await releaseOfMedium(machine)) !== undefined
  if (named && !ofMedium) refuseRegistries(context, named)
}

/** The release to install: the requested one, else that of the configuration or the boot medium. */
async function chosenRelease(
  machine: Machine,
  settings: InstallSettings,
  context: Context,
  report: (message: string) => void,
): Promise<Release> {
  const release = await releaseToInstall(machine, settings, { signal: context.signal, report })
  const old = isTrusted(context) ? undefined : tooOld(machine, release.manifest.version, { trusted: false })
  if (old) throw new RpcError('FailedPrecondition', `install: ${old}`)
  return release
}

async function upgradeFindings(machine: Machine, image: string, context: Context, how: UpgradeOptions): Promise<readonly Finding[]> {
  refuseRegistries(context, image)
  return (await examine(machine, image, how)).plan.findings
}

async function installFindings(
  machine: Machine,
  given: InstallSettings,
  image: string,
  context: Context,
  report: (message: string) => void,
): Promise<Finding[]> {
  const settings = settingsOf(machine, given, image)
  const fine = (subject: string, text: string): Finding => ({ subject, text, verdict: 'fine' })
  const findings: Finding[] = []
  if (isInstalled(machine)) findings.push({ subject: 'machine', text: 'already installed: upgrade it instead', verdict: 'refused' })
  try {
    await refuseForeign(machine, image, context)
    const { disk, partitions, firmware, wipe } = await planInstall(machine, settings)
    const { dev_path: path, model, serial, pretty_size: size } = disk.spec
    findings.push(fine('disk', [path, model, serial, size].filter(Boolean).join(', ')))
    if (wipe) findings.push({ subject: 'disk', text: 'everything on it is lost', verdict: 'note' })
    for (const { label, device, size } of partitions) findings.push(fine('partition', `${device} ${label} ${prettyBinarySize(size)}`))
    findings.push(fine('volumes', 'STATE (100 MiB) and EPHEMERAL (the rest) are made at the first start from the disk'))
    findings.push(fine('boot loader', firmware === 'uefi' ? 'systemd-boot, for UEFI' : 'GRUB, for BIOS'))
    const release = await chosenRelease(machine, settings, context, report)
    const kind = firmware === 'uefi' ? 'systemd-boot' : 'grub'
    const bytes = filesFor(kind).reduce((sum, name) => sum + release.size(name), 0)
    findings.push(
      fine('image', `${release.manifest.version} (${release.image}) from ${release.origin}, ${prettyBinarySize(bytes)} in slot A`),
    )
    findings.push(fine('signature', 'made with the key that this system trusts'))
  } catch (error) {
    if (!(error instanceof RpcError) && !isRefusal(error)) throw error
    findings.push({ subject: 'install', text: messageOf(error), verdict: 'refused' })
  }
  return findings
}
