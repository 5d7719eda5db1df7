/**
 * Runs all volumes through their phases. Volumes of an earlier wave are ready before those of a later one are provisioned, so
 * that the system's volumes come first. After a pass that wrote to a disk, no volume advances until all devices were probed retryInterval.
 */
import { type Controller, defineController, exclusive, type Input, type Reader, strong, weak } from '../../../cosi/controller.ts'
import type { Resource, SpecOf } from '../../../cosi/resource.ts'
import { messageOf } from '../../../wire/error-message.ts'
import { formatHostPort } from '../../../wire/host-port.ts'
import type { Machine } from '../../area.ts'
import { SystemInformation } from '../../hardware/resources/system-information.ts'
import { Endpoint } from '../../k8s/resources/endpoint.ts'
import { DevicesStatus } from '../../runtime/resources/devices-status.ts'
import { EncryptionSalt } from '../../secrets/resources/encryption-salt.ts'
import { OSRootSecret } from '../../secrets/resources/os-root-secret.ts'
import { trustdPort } from '../../trustd-port.ts'
import type { EncryptedVolumes } from '../encryption/encrypted-volumes.ts'
import { KeyError, type KeySources, type Siblings } from '../encryption/passphrase.ts'
import type { RecoverySlot } from '../encryption/recovery.ts'
import { DiscoveredVolume } from '../resources/discovered-volume.ts'
import { DiscoveryRefreshRequest, DiscoveryRefreshStatus } from '../resources/discovery-refresh.ts'
import { Disk } from '../resources/disk.ts'
import { DiskRecovery } from '../resources/disk-recovery.ts'
import { VolumeConfig } from '../resources/volume-config.ts'
import { VolumeLifecycle } from '../resources/volume-lifecycle.ts'
import { VolumeRecovery, VolumeRecoveryRequest } from '../resources/volume-recovery.ts'
import { VolumeStatus } from '../resources/volume-status.ts'
import { OtherContent } from '../volumes/prepare.ts'
import { NoRoom } from '../volumes/provision.ts'
import { Settling, waiting } from '../volumes/settle.ts'
import { type Config, type Found, systemDiskOf } from '../volumes/view.ts'

type Status = SpecOf<typeof VolumeStatus>

/** Retry interval of failed volumes in milliseconds: a disk may be attached or wiped meanwhile. */
const retryInterval = 15_000

/** The same for keys whose server does not answer, as before the network is up. */
const passingInterval = 2_000

/** Interval of attempts to close an encrypted volume that is still mounted, in milliseconds. */
const closeInterval = 250

/** What keys of volumes come from besides the configuration of the volumes. */
const keyInputs = {
  system: weak(SystemInformation, { id: 'systeminformation' }),
  salt: weak(EncryptionSalt, { id: 'salt' }),
  endpoints: weak(Endpoint),
  os: weak(OSRootSecret, { id: 'os' }),
}

/** Locates, provisions, opens and prepares volumes. */
export const settleVolumes = (
  machine: Pick<Machine, 'kernel' | 'spawn' | 'log' | 'clock' | 'meta'>,
  encrypted: EncryptedVolumes,
): Controller => {
  const settling = new Settling(machine, encrypted)
  return defineController({
    name: 'block.VolumeManagerController',
    inputs: {
      config: strong(VolumeConfig),
      volume: weak(DiscoveredVolume),
      disk: weak(Disk),
      devices: weak(DevicesStatus, { id: 'devices' }),
      refreshed: weak(DiscoveryRefreshStatus),
      lifecycle: weak(VolumeLifecycle),
      ...keyInputs,
      whom: weak(DiskRecovery, { id: 'recovery' }),
      // Wakes this controller; the key itself is with the encrypted volumes.
      recoveryRequest: weak(VolumeRecoveryRequest),
    },
    outputs: { status: exclusive(VolumeStatus), request: exclusive(DiscoveryRefreshRequest), recovery: exclusive(VolumeRecovery) },
    async reconcile({ config, volume, disk, devices, refreshed, lifecycle, whom, status, request, recovery, log, wakeIn, ...known }) {
      const ready = devices.get('devices')?.spec.ready === true
      const inUse = lifecycle.list().length > 0
      const found: Found = { disks: disk.list(), volumes: volume.list(), system: systemDiskOf(volume.list()) }
      const whole = ready && isWhole(found)
      const current = () => whole && refreshed.get('system')?.spec.request === settling.written + 1
      let blockedFrom = Number.POSITIVE_INFINITY
      let undecided = Number.POSITIVE_INFINITY
      if (current() && inUse) await settling.mend(found)
      // Writes of this pass do not invalidate it for later volumes: each reads the disk itself before it writes.
      const turn = current()
      settling.forget((id) => config.get(id) !== undefined)
      const { closed, busy } = settling.close((id) => inUse && config.get(id) !== undefined)
      if (busy.size > 0) wakeIn(closeInterval)
      const sources = keySources(known)
      const recipients = whom.get('recovery')?.spec.recipients
      for (const { metadata, spec } of byWave(config.list())) {
        const { id, labels } = metadata
        const wave = spec.provisioning.wave ?? 0
        const mayMake = inUse && wave <= blockedFrom && (wave < undecided || !takesTheRest(spec))
        const before = status.get(id)?.spec
        let next = before && closed.has(id) ? { ...before, phase: 'closed' as const } : (before ?? waiting(spec))
        try {
          if (turn && !busy.has(id)) next = await settling.settle(id, spec, { found, inUse, mayMake, sources, recipients })
        } catch (error) {
          // A volume that failed temporarily still needs its space, so no volume may take the remaining space until it is settled.
          if (!(error instanceof NoRoom || error instanceof OtherContent)) undecided = Math.min(undecided, wave)
          next = failed(spec, before, error)
          if (before?.errorMessage !== next.errorMessage) log.error('volume failed', { volume: id, error: next.errorMessage })
          wakeIn(error instanceof KeyError && error.passing ? passingInterval : retryInterval)
        }
        if (next.phase === 'waiting' || next.phase === 'failed') blockedFrom = Math.min(blockedFrom, wave)
        status.put(id, next, { labels })
      }
      for (const [id, { locked, keys }] of encrypted.recoveries) if (config.get(id)) recovery.put(id, recoverySpec(locked, keys))
      if (encrypted.dueIn !== undefined) wakeIn(encrypted.dueIn)
      if (ready) request.put('system', { request: settling.written + 1 })
    },
  })
}

type KeyInputs = { readonly [K in keyof typeof keyInputs]: (typeof keyInputs)[K] extends Input<infer S> ? Reader<S> : never }

const keySources = ({ system, salt, endpoints, os }: KeyInputs): KeySources => ({
  machineUUID: system.get('systeminformation')?.spec.uuid,
  salt: salt.get('salt')?.spec.diskSalt,
  siblings: siblingsOf(endpoints.list(), os.get('os')?.spec),
})

/** The control planes that are known, by address first: a name may need a resolver. */
function siblingsOf(endpoints: readonly Resource<SpecOf<typeof Endpoint>>[], os?: SpecOf<typeof OSRootSecret>): Siblings | undefined {
  if (!os?.token) return undefined
  const hosts = [...endpoints.flatMap(({ spec }) => spec.addresses), ...endpoints.flatMap(({ spec }) => spec.hosts)]
  const ca = (os.acceptedCAs ?? []).map(({ crt }) => Buffer.from(crt, 'base64').toString('utf8')).join('\n')
  return { addresses: [...new Set(hosts)].map((host) => formatHostPort(host, trustdPort)), ca, token: os.token }
}

const recoverySpec = (locked: boolean, keys: readonly RecoverySlot[]): SpecOf<typeof VolumeRecovery> => ({
  locked,
  keys: keys.map(({ slot, escrow, recipients }) => ({ slot, escrow, ...(recipients && { recipients: [...recipients] }) })),
})

function failed(config: Config, before: Status | undefined, error: unknown): Status {
  return {
    ...waiting(config),
    phase: 'failed',
    preFailPhase: before?.phase === 'failed' ? before.preFailPhase : (before?.phase ?? 'waiting'),
    errorMessage: messageOf(error),
  }
}

/** True if every disk with a discovered volume is known as a disk. */
const isWhole = ({ disks, volumes }: Found): boolean => {
  const ids = new Set(disks.map(({ metadata }) => metadata.id))
  return volumes.every(({ metadata, spec }) => ids.has(spec.parent ?? metadata.id))
}

/** Provisioning order: by wave, and within one, volumes of fixed size before those that take the remaining space. */
function byWave(configs: Resource<Config>[]): Resource<Config>[] {
  const rank = ({ spec }: Resource<Config>) => [spec.provisioning.wave ?? 0, takesTheRest(spec) ? 1 : 0] as const
  return configs.sort((a, b) => {
    const [[wave, open], [otherWave, otherOpen]] = [rank(a), rank(b)]
    return wave - otherWave || open - otherOpen || (a.metadata.id < b.metadata.id ? -1 : 1)
  })
}

/** True for a volume without a maximum size. */
const takesTheRest = ({ provisioning }: Config): boolean => !provisioning.partitionSpec?.maxSize
