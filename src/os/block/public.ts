/** What other areas may use of this one besides its resources and documents. */

// Installation and slots read and write the table of the system disk.
export { known, probeDevice, readDiskTable, withDevice, writeDiskTable } from './device.ts'
// The state of security names the key of the started image; releases are compared with it.
export { findBootPolicy, policyKeyFingerprint } from './encryption/tpm/boot-policy.ts'
// Installation chooses its disk by the selector of the configuration.
export { chooseInstallDisk, describeDisks, InstallDiskError, type KnownDisk } from './install-disk.ts'
// Installation plans and writes the partitions; slots find theirs among them.
export { DiskOccupied, DiskTooSmall, type LaidOut, laidOut, layOutDisk, type PlannedPartition, planDisk, refuseOccupied } from './layout.ts'
// The boot sequence takes the values that a boot medium gives.
export { parseGivenMeta } from './meta/given.ts'
// Releases keep their state under these tags.
export { metaTags } from './meta/meta.ts'
// Plans and errors of an installation name sizes.
export { mebibyte, prettyBinarySize } from './sizes.ts'
// Diagnosis recognises a disk whose reserve is given up.
export { reserveOf } from './space-reserve.ts'
// Installation looks for disks before there are resources of them.
export { blockDevices } from './sysfs.ts'
// The boot sequence waits for these volumes.
export { systemLabels } from './volumes/folders.ts'
// Roots of extension services are overlays over folders of the image too.
export { mountOverlay } from './volumes/mounts.ts'
// Sequences mount and release volumes; the identities of a node wait for STATE.
export { beginVolumes, endVolumes, mountVolume, stateIsAwaited, unmountVolume, untilMounted } from './volumes/requests.ts'
// Containers are served from the images that came with the machine.
export { imageCacheIds, imageCacheMedium } from './volumes/system.ts'
// Reset and start wipe disks.
export { wipeDevice, wipeLabels } from './wipe.ts'
