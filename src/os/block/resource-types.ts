import { BlockDevice } from './resources/block-device.ts'
import { BlockSymlink } from './resources/block-symlink.ts'
import { DiscoveredVolume } from './resources/discovered-volume.ts'
import { DiscoveryRefreshRequest, DiscoveryRefreshStatus } from './resources/discovery-refresh.ts'
import { Disk } from './resources/disk.ts'
import { DiskRecovery } from './resources/disk-recovery.ts'
import { MountRequest } from './resources/mount-request.ts'
import { MountStatus } from './resources/mount-status.ts'
import { SwapStatus } from './resources/swap-status.ts'
import { SystemDisk } from './resources/system-disk.ts'
import { UserDiskConfigStatus } from './resources/user-disk-config-status.ts'
import { VolumeConfig } from './resources/volume-config.ts'
import { VolumeLifecycle } from './resources/volume-lifecycle.ts'
import { VolumeMountRequest, VolumeMountStatus } from './resources/volume-mount.ts'
import { VolumeRecovery, VolumeRecoveryRequest } from './resources/volume-recovery.ts'
import { VolumeStatus } from './resources/volume-status.ts'
import { ZswapStatus } from './resources/zswap-status.ts'

/** The resource types of this area. */
export const resources = [
  BlockDevice,
  BlockSymlink,
  DiscoveredVolume,
  DiscoveryRefreshRequest,
  DiscoveryRefreshStatus,
  Disk,
  DiskRecovery,
  MountRequest,
  MountStatus,
  SwapStatus,
  SystemDisk,
  UserDiskConfigStatus,
  VolumeConfig,
  VolumeLifecycle,
  VolumeMountRequest,
  VolumeMountStatus,
  VolumeRecovery,
  VolumeRecoveryRequest,
  VolumeStatus,
  ZswapStatus,
]
