/** Opens the targets of the configuration. */
import type { Machine } from '../../area.ts'
import { VolumeMountStatus } from '../../block/resources/volume-mount.ts'
import { FolderTarget } from './folder-target.ts'
import { PeerTarget, peerPlace } from './peer-target.ts'
import { S3Client } from './s3-client.ts'
import { S3Target } from './s3-target.ts'
import type { OpenTarget } from './settings.ts'

const defaultPath = 'etcd-backups'
const defaultRegion = 'us-east-1'

/** How the targets of a machine's configuration are opened. */
export const targetsOf =
  (machine: Pick<Machine, 'kernel' | 'store' | 'clock' | 'outbound'>): OpenTarget =>
  ({ name = '', folder, s3, peer }, cluster) => {
    const { clock, outbound } = machine
    const { files } = machine.kernel
    if (s3) {
      const { endpoint = '', bucket = '', region = defaultRegion, prefix = defaultPath, accessKeyId = '', secretAccessKey = '', ca } = s3
      const client = new S3Client({ endpoint, bucket, region, accessKeyId, secretAccessKey, ca }, clock)
      return new S3Target({ name, cluster, prefix }, client, files)
    }
    if (peer) return new PeerTarget({ name, cluster, ...peerPlace(peer, outbound) }, files)
    const { volume = '', path = defaultPath } = folder ?? {}
    const missing = () => missingVolume(machine, volume)
    return new FolderTarget({ name, cluster, folder: `/var/mnt/${volume}/${path}`, missing }, files)
  }

/** Why a volume for workloads cannot be used; undefined when it is mounted. */
export function missingVolume({ kernel: { mode }, store }: Pick<Machine, 'kernel' | 'store'>, volume: string): string | undefined {
  // In a container volumes are folders of its host.
  if (mode === 'container' || store.list(VolumeMountStatus).some(({ spec }) => spec.target === `/var/mnt/${volume}`)) return undefined
  return `volume "${volume}" is not mounted: declare it with a UserVolumeConfig`
}
