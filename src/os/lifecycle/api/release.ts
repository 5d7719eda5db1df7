import { ichor } from '../../../rpc/enums.ts'
import { type Context, clientStream, type Method, type Role, serverStream, unary } from '../../../rpc/server/method.ts'
import { RpcError } from '../../../rpc/status.ts'
import type { Machine } from '../../area.ts'
import { metaTags } from '../../block/meta/meta.ts'
import { prettyBinarySize } from '../../block/sizes.ts'
import { MaintenanceServiceRequest } from '../../runtime/resources/maintenance-service-request.ts'
import { installOn, installWish, releaseToInstall } from '../install/install-system.ts'
import { type InstallWish, planInstall } from '../install/plan.ts'
import { filesFor } from '../release/release.ts'
import { takeUpload } from '../release/uploads.ts'
import type { Phase } from '../sequencer.ts'
import { isInstalled } from '../slots/boot-disk.ts'
import { drain, end, reboot, stopAll } from '../stop.ts'
import type { Finding } from '../upgrade/prepare.ts'
import { beginRollback, examine, type UpgradeOptions, type WrittenUpgrade, writeUpgrade } from '../upgrade/upgrade.ts'
import { beginSequence } from './begin.ts'
import { asStatus, telling } from './progress.ts'

/** In maintenance anyone may install, as anyone may hand in a configuration; afterwards administrators only. */
const access: readonly Role[] = ['os:admin', 'os:reader']

const { FINE, NOTE, REFUSED } = ichor.v1.PlanItem.Verdict
const verdicts = { fine: FINE, note: NOTE, refused: REFUSED } as const

/** Releases: sent, looked at, installed, upgraded to, gone back from. */
export const releaseMethods = (machine: Machine): Method[] => {
  const { log } = machine
  const inMaintenance = () => machine.store.get(MaintenanceServiceRequest, 'maintenance') !== undefined
  const admit = ({ roles }: Context) => {
    if (!roles.has('os:admin') && !inMaintenance()) throw new RpcError('PermissionDenied', 'not authorized')
  }
  const options = (tell: (message: string) => void, signal: AbortSignal, force = false): UpgradeOptions => ({ tell, signal, force })

  /** Writes and begins the trial; what starts the machine anew is up to the caller. */
  const upgrading = (reference: string, context: Context, force: boolean) =>
    telling(async (tell) => {
      if (!reference) throw new RpcError('InvalidArgument', 'upgrade: no image is named')
      const told = (message: string) => {
        log.info('upgrade', { step: message })
        tell(message)
      }
      const written = await writeUpgrade(machine, reference, options(told, context.signal, force))
      await written.begin()
      told(`reboot to start ${written.release.manifest.version}`)
    })

  const installing = (given: InstallWish, image: string, signal: AbortSignal) =>
    telling(async (tell) => {
      if (isInstalled(machine)) throw new RpcError('FailedPrecondition', 'install: this machine is installed already, upgrade it instead')
      const told = (message: string) => {
        log.info('install', { step: message })
        tell(message)
      }
      const wish = wished(machine, given, image)
      await planInstall(machine, wish)
      await installOn(machine, wish, await releaseToInstall(machine, wish, { signal, tell: told }), { signal, tell: told })
    })

  return [
    clientStream('ichor.v1.ReleaseService/Send', access, async (requests, context) => {
      admit(context)
      const onDisk = isInstalled(machine) && machine.supervisor.isUp('cri')
      return { imageName: await takeUpload(machine.kernel, requests, onDisk).catch((error) => Promise.reject(asStatus(error))) }
    }),

    serverStream('ichor.v1.ReleaseService/Plan', access, async function* (request, context) {
      admit(context)
      let items: readonly Finding[] = []
      for await (const progress of telling(async (tell) => {
        items =
          request.install || !isInstalled(machine)
            ? await installFindings(machine, wished(machine, wishOf(request), request.imageName), context.signal, tell)
            : (await examine(machine, request.imageName, options(tell, context.signal, request.force))).plan.findings
      }))
        yield { progress }
      yield { items: items.map(({ verdict, ...item }) => ({ ...item, verdict: verdicts[verdict] })) }
    }),

    serverStream('ichor.v1.ReleaseService/Upgrade', access, async function* ({ imageName, force, reboot: again }, context) {
      admit(context)
      for await (const message of upgrading(imageName, context, force)) yield { message }
      if (again) beginSequence(machine, inMaintenance() ? 'maintenanceUpgrade' : 'reboot', reboot(machine))
    }),

    serverStream('ichor.v1.ReleaseService/Install', access, async function* (request, context) {
      admit(context)
      for await (const message of installing(wishOf(request), request.imageName, context.signal)) yield { message }
      if (request.reboot) beginSequence(machine, 'reboot', reboot(machine))
    }),

    serverStream('machine.LifecycleService/Upgrade', ['os:admin'], async function* ({ source }, context) {
      for await (const message of upgrading(source?.imageName ?? '', context, false)) yield { progress: { message } }
      yield { progress: { exitCode: 0 } }
    }),

    serverStream('machine.LifecycleService/Install', ['os:admin'], async function* ({ source, destination }, context) {
      for await (const message of installing(wishOf({ disk: destination?.disk ?? '' }), source?.imageName ?? '', context.signal))
        yield { progress: { message } }
      yield { progress: { exitCode: 0 } }
    }),

    unary('machine.MachineService/Upgrade', ['os:admin'], async ({ image, stage, force }) => {
      if (!image) throw new RpcError('InvalidArgument', 'upgrade: no image is named')
      const tell = (step: string) => log.info('upgrade', { step })
      const written = await writeUpgrade(machine, image, options(tell, AbortSignal.timeout(30 * 60_000), force)).catch((error) =>
        Promise.reject(asStatus(error)),
      )
      const name = stage ? 'stageUpgrade' : inMaintenance() ? 'maintenanceUpgrade' : 'upgrade'
      if (stage) {
        machine.meta.set(metaTags.stagedImage, image)
        machine.meta.set(metaTags.stagedOptions, JSON.stringify({ image, slot: written.slot }))
        await machine.meta.flush()
      }
      const phases =
        name === 'maintenanceUpgrade' ? upgradePhases(machine, written, []) : upgradePhases(machine, written, stage ? [] : drain(machine))
      try {
        const actorId = beginSequence(machine, name, phases, () => void abandon(machine, written))
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

async function installFindings(
  machine: Machine,
  wish: InstallWish,
  signal: AbortSignal,
  tell: (message: string) => void,
): Promise<Finding[]> {
  const fine = (subject: string, text: string): Finding => ({ subject, text, verdict: 'fine' })
  const findings: Finding[] = []
  if (isInstalled(machine)) findings.push({ subject: 'machine', text: 'it is installed already: upgrade it instead', verdict: 'refused' })
  try {
    const { disk, partitions, firmware, wipe } = await planInstall(machine, wish)
    const { dev_path: path, model, serial, pretty_size: size } = disk.spec
    findings.push(fine('disk', [path, model, serial, size].filter(Boolean).join(', ')))
    if (wipe) findings.push({ subject: 'disk', text: 'everything on it is lost', verdict: 'note' })
    for (const { label, device, size } of partitions) findings.push(fine('partition', `${device} ${label} ${prettyBinarySize(size)}`))
    findings.push(fine('volumes', 'STATE (100 MiB) and EPHEMERAL (the rest) are made at the first start from the disk'))
    findings.push(fine('boot loader', firmware === 'uefi' ? 'systemd-boot, for UEFI' : 'GRUB, for BIOS'))
    const release = await releaseToInstall(machine, wish, { signal, tell })
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
