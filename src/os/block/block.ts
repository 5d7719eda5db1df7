import type { Area, AreaParts, Machine } from '../area.ts'
import { disks, wipeRefused } from './api/disks.ts'
import { metaMethods } from './api/meta.ts'
import { recoveryMethods, recoveryRefused } from './api/recovery.ts'
import { wipeDevices } from './api/wipe.ts'
import { assembleArrays } from './controllers/arrays.ts'
import { observeContainerVolumes } from './controllers/container-volumes.ts'
import { observeDevices, observeDisks } from './controllers/devices.ts'
import { observeVolumes } from './controllers/discovery.ts'
import { configDiskRecovery } from './controllers/disk-recovery.ts'
import { observeMeasurements } from './controllers/measurements.ts'
import { mountVolumes } from './controllers/mount.ts'
import { mergeMountRequests } from './controllers/mount-request.ts'
import { publishMounts } from './controllers/mount-status.ts'
import { measureStart } from './controllers/pcr-status.ts'
import { keepSpaceReserve } from './controllers/space-reserve.ts'
import { observeSwap } from './controllers/swap.ts'
import { observeSymlinks } from './controllers/symlinks.ts'
import { observeSystemDisk } from './controllers/system-disk.ts'
import { configUserDisks } from './controllers/user-disks.ts'
import { configVolumes } from './controllers/volume-config.ts'
import { activateVolumeGroups } from './controllers/volume-groups.ts'
import { settleVolumes } from './controllers/volumes.ts'
import { configZswap, observeZswap } from './controllers/zswap.ts'
import { EncryptedVolumes } from './encryption/encrypted-volumes.ts'
import { kmsKeys } from './encryption/kms.ts'
import { tpmKeys } from './encryption/tpm/sealing.ts'
import { TpmWindow } from './encryption/tpm/tpm-window.ts'
import { resources } from './resource-types.ts'

/** The block area: disks, partitions, volumes and mounts. A container has volumes, but no disks. */
export const block: Area = {
  name: 'block',
  resources,
  parts: (machine) => (machine.kernel.mode === 'container' ? inContainer(machine) : onMachine(machine)),
}

const inContainer = ({ kernel }: Machine): AreaParts => ({
  controllers: [observeContainerVolumes(kernel)],
  methods: [disks, wipeRefused, ...recoveryRefused],
})

function onMachine(machine: Machine): AreaParts {
  const tpm = new TpmWindow(machine.kernel)
  const encrypted = new EncryptedVolumes(machine, { kms: kmsKeys(machine.outbound), tpm: tpmKeys(tpm, machine.kernel.files) })
  return {
    controllers: controllers(machine, encrypted, tpm),
    methods: [disks, wipeDevices(machine), ...metaMethods(machine.meta), ...recoveryMethods(machine, encrypted)],
  }
}

const controllers = (machine: Machine, encrypted: EncryptedVolumes, tpm: TpmWindow) => [
  observeDevices(machine.kernel),
  observeSymlinks(machine.kernel),
  observeDisks(machine.kernel),
  observeVolumes(machine.kernel),
  assembleArrays(machine),
  activateVolumeGroups(machine),
  observeSystemDisk,
  configVolumes(machine.meta),
  configUserDisks,
  configDiskRecovery,
  settleVolumes(machine, encrypted),
  measureStart(tpm),
  observeMeasurements(tpm, machine.kernel),
  mergeMountRequests,
  mountVolumes(machine),
  publishMounts,
  keepSpaceReserve(machine.kernel),
  observeSwap(machine.kernel),
  configZswap,
  observeZswap(machine.kernel),
]
