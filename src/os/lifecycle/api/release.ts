import { ichor } from '../../../rpc/enums.ts'
import { type Context, clientStream, inMaintenanceOr, type Method, serverStream, unary } from '../../../rpc/server/method.ts'
import { RpcError } from '../../../rpc/status.ts'
import type { Machine } from '../../area.ts'
import { metaTags } from '../../block/meta/meta.ts'
import { prettyBinarySize } from '../../block/sizes.ts'
import { inMaintenance } from '../../config/maintenance.ts'
import { installOn, installWish, releaseToInstall } from '../install/install-system.ts'
import { type InstallWish, planInstall } from '../install/plan.ts'
import { isOwnRelease, releaseOfMedium } from '../release/find-release.ts'
import { tooOld } from '../release/floor.ts'
import { filesFor, type Release } from '../release/release.ts'
import { isUpload, takeUpload } from '../release/uploads.ts'
import type { Phase } from '../sequencer.ts'
import { isInstalled } from '../slots/boot-disk.ts'
import { drain, end, reboot, stopAll } from '../stop.ts'
import type { Finding } from '../upgrade/prepare.ts'
import { beginRollback, examine, type UpgradeOptions, type WrittenUpgrade, writeUpgrade } from '../upgrade/upgrade.ts'
import { beginSequence } from './begin.ts'
import { asStatus, telling } from './progress.ts'

/** In maintenance anyone may install, as anyone may hand in a configuration; afterwards administrators only. */
const access = inMaintenanceOr(['os:admin'])

const { FINE, NOTE, REFUSED } = ichor.v1.PlanItem.Verdict
const verdicts = { fine: FINE, note: NOTE, refused: REFUSED } as const

/** Releases: sent, looked at, installed, upgraded to, gone back from. */
export const releaseMethods = (machine: Machine): Method[] => {
  const { log } = machine
  const options = (tell: (message: string) => void, context: Pick<Context, 'roles' | 'signal'>, force = false): UpgradeOptions => ({
    tell,
    signal: context.signal,
    force,
    trusted: isTrusted(context),
  })

  /** Writes and begins the trial; what starts the machine anew is up to the caller. */
  const upgrading = (reference: string, context: Context, force: boolean) =>
    telling(async (tell) => {
      if (!reference) throw new RpcError('InvalidArgument', 'upgrade: no image is named')
      const told = (message: string) => {
        log.info('upgrade', { step: message })
        tell(message)
      }
      refuseRegistries(context, reference)
      const written = await writeUpgrade(machine, reference, options(told, context, force))
      await written.begin()
      told(`reboot to start ${written.release.manifest.version}`)
    })

  const installing = (given: InstallWish, image: string, context: Context) =>
    telling(async (tell) => {
      const { signal } = context
      if (isInstalled(machine)) throw new RpcError('FailedPrecondition', 'install: this machine is installed already, upgrade it instead')
      const told = (message: string) => {
        log.info('install', { step: message })
        tell(message)
      }
      await refuseForeign(machine, image, context)
      const wish = wished(machine, given, image)
      await planInstall(machine, wish)
      await installOn(machine, wish, await chosenRelease(machine, wish, context, told), { signal, tell: told })
    })

  const examineAs = (context: Context, reference: string, how: UpgradeOptions) => {
    refuseRegistries(context, reference)
    return examine(machine, reference, how)
  }

  return [
    clientStream('ichor.v1.ReleaseService/Send', access, async (requests) => {
      const onDisk = isInstalled(machine) && machine.supervisor.isUp('cri')
      return { imageName: await takeUpload(machine.kernel, requests, { onDisk }).catch((error) => Promise.reject(asStatus(error))) }
    }),

    serverStream('ichor.v1.ReleaseService/Plan', access, async function* (request, context) {
      let items: readonly Finding[] = []
      for await (const progress of telling(async (tell) => {
        items =
          request.install || !isInstalled(machine)
            ? await installFindings(machine, wishOf(request), request.imageName, context, tell)
            : (await examineAs(context, request.imageName, options(tell, context, request.force))).plan.findings
      }))
        yield { progress }
      yield { items: items.map(({ verdict, ...item }) => ({ ...item, verdict: verdicts[verdict] })) }
    }),

    serverStream('ichor.v1.ReleaseService/Upgrade', access, async function* ({ imageName, force, reboot: again }, context) {
      for await (const message of upgrading(imageName, context, force)) yield { message }
      if (again) beginSequence(machine, inMaintenance(machine.store) ? 'maintenanceUpgrade' : 'reboot', reboot(machine))
    }),

    serverStream('ichor.v1.ReleaseService/Install', access, async function* (request, context) {
      for await (const message of installing(wishOf(request), request.imageName, context)) yield { message }
      if (request.reboot) beginSequence(machine, 'reboot', reboot(machine))
    }),

    serverStream('machine.LifecycleService/Upgrade', ['os:admin'], async function* ({ source }, context) {
      for await (const message of upgrading(source?.imageName ?? '', context, false)) yield { progress: { message } }
      yield { progress: { exitCode: 0 } }
    }),

    serverStream('machine.LifecycleService/Install', ['os:admin'], async function* ({ source, destination }, context) {
      for await (const message of installing(wishOf({ disk: destination?.disk ?? '' }), source?.imageName ?? '', context))
        yield { progress: { message } }
      yield { progress: { exitCode: 0 } }
    }),

    unary('machine.MachineService/Upgrade', ['os:admin'], async ({ image, stage, force }, { roles }) => {
      if (!image) throw new RpcError('InvalidArgument', 'upgrade: no image is named')
      const tell = (step: string) => log.info('upgrade', { step })
      const written = await writeUpgrade(machine, image, options(tell, { roles, signal: AbortSignal.timeout(30 * 60_000) }, force)).catch(
        (error) => Promise.reject(asStatus(error)),
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
        const actorId = beginSequence(machine, name, phases, () => abandon(machine, written))
        return { messages: [{ ack: 'Upgrade request received', actorId }] }
      } catch (error) {
        await written.withdraw()
        throw error
      }
    }),

    unary('machine.MachineService/Rollback', ['os:admin'], async () => {
      const { slot, version } = await beginRollback(machine).catch((error) => Promise.reject(asStatus(error)))
      log.info('going back', { version, slot: slot.toUpperCase() })
      beginSequence(machine, 'reboot', reboot(machine))
      return { messages: [{}] }
    }),
  ]
}

/** What is well is written down, pods leave, everything stops, and only when nothing of the disk is in use any more is the trial begun. */
function upgradePhases(machine: Machine, written: WrittenUpgrade, before: Phase[]): Phase[] {
  const stopped = stopAll(machine, { strict: true })
  return [
    { name: 'saveMeta', tasks: [{ name: 'flushMeta', run: () => written.announce() }] },
    ...before,
    ...stopped.slice(0, -1),
    { name: 'upgrade', tasks: [{ name: 'upgrade', run: () => written.begin() }] },
    ...stopped.slice(-1),
    end(machine, 'reboot'),
  ]
}

/** An upgrade that cannot go on changes nothing: the machine starts anew with what it had. */
async function abandon(machine: Machine, written: WrittenUpgrade): Promise<void> {
  machine.log.error('the upgrade is given up, the machine starts anew as it was')
  await written.withdraw().catch((error) => machine.log.error('the trial could not be withdrawn', { error }))
  await machine.sequencer.run('reboot', reboot(machine, { force: true })).catch(() => machine.end('reboot'))
}

function wishOf({ disk = '', wipe = false }: { disk?: string; wipe?: boolean }): InstallWish {
  return { ...(disk && { disk, diskSelector: undefined }), ...(wipe && { wipe }) }
}

/** What the configuration says, with what the caller says instead. */
function wished(machine: Machine, given: InstallWish, image: string): InstallWish {
  return { ...installWish(machine), ...given, ...(image && { image }) }
}

/** Anybody may call a machine in maintenance, but only administrators decide where it connects to and what fills its memory. */
const isTrusted = ({ roles }: Pick<Context, 'roles'>): boolean => roles.has('os:admin')

function refuseRegistries(context: Context, reference: string): void {
  if (isTrusted(context) || isUpload(reference)) return
  const what = 'in maintenance no image is pulled for callers without a certificate'
  throw new RpcError('PermissionDenied', `${what}: send the image itself (--image ./FILE.tar), or take the release of the medium`)
}

/** What is installed may be the release of the medium, whoever names it. */
async function refuseForeign(machine: Machine, named: string, context: Context): Promise<void> {
  const ofMedium = isOwnRelease(machine, named) && (await releaseOfMedium(machine)) !== undefined
  if (named && !ofMedium) refuseRegistries(context, named)
}

/** The release to install: what the caller names, else what the configuration or the medium has. */
async function chosenRelease(machine: Machine, wish: InstallWish, context: Context, tell: (message: string) => void): Promise<Release> {
  const release = await releaseToInstall(machine, wish, { signal: context.signal, tell })
  const old = isTrusted(context) ? undefined : tooOld(machine, release.manifest.version, { trusted: false })
  if (old) throw new RpcError('FailedPrecondition', `install: ${old}`)
  return release
}

async function installFindings(
  machine: Machine,
  given: InstallWish,
  image: string,
  context: Context,
  tell: (message: string) => void,
): Promise<Finding[]> {
  const wish = wished(machine, given, image)
  const fine = (subject: string, text: string): Finding => ({ subject, text, verdict: 'fine' })
  const findings: Finding[] = []
  if (isInstalled(machine)) findings.push({ subject: 'machine', text: 'it is installed already: upgrade it instead', verdict: 'refused' })
  try {
    await refuseForeign(machine, image, context)
    const { disk, partitions, firmware, wipe } = await planInstall(machine, wish)
    const { dev_path: path, model, serial, pretty_size: size } = disk.spec
    findings.push(fine('disk', [path, model, serial, size].filter(Boolean).join(', ')))
    if (wipe) findings.push({ subject: 'disk', text: 'everything on it is lost', verdict: 'note' })
    for (const { label, device, size } of partitions) findings.push(fine('partition', `${device} ${label} ${prettyBinarySize(size)}`))
    findings.push(fine('volumes', 'STATE (100 MiB) and EPHEMERAL (the rest) are made at the first start from the disk'))
    findings.push(fine('boot loader', firmware === 'uefi' ? 'systemd-boot, for UEFI' : 'GRUB, for BIOS'))
    const release = await chosenRelease(machine, wish, context, tell)
    const kind = firmware === 'uefi' ? 'systemd-boot' : 'grub'
    const bytes = filesFor(kind).reduce((sum, name) => sum + release.size(name), 0)
    findings.push(
      fine('image', `${release.manifest.version} (${release.image}) from ${release.origin}, ${prettyBinarySize(bytes)} in slot A`),
    )
    findings.push(fine('signature', 'made with the key that this system trusts'))
  } catch (error) {
    const stated = asStatus(error)
    if (!(stated instanceof RpcError)) throw error
    findings.push({ subject: 'install', text: stated.message, verdict: 'refused' })
  }
  return findings
}
