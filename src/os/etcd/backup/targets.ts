/** Opens the targets of the configuration. */
import type { Machine } from '../../area.ts'
import { VolumeMountStatus } from '../../block/resources/volume-mount.ts'
import { FolderTarget } from './folder-target.ts'
import { S3Client } from './s3-client.ts'
import { S3Target } from './s3-target.ts'
import type { OpenTarget } from './settings.ts'

const defaultPath = 'etcd-backups'
const defaultRegion = 'us-east-1'

/** How the targets of a machine's configuration are opened. */
export const targetsOf =
  ({ kernel: { files, mode }, store, clock }: Pick<Machine, 'kernel' | 'store' | 'clock'>): OpenTarget =>
  ({ name = '', folder, s3 }, cluster) => {
    if (s3) {
      const { endpoint = '', bucket = '', region = defaultRegion, prefix = defaultPath, accessKeyId = '', secretAccessKey = '', ca } = s3
      const client = new S3Client({ endpoint, bucket, region, accessKeyId, secretAccessKey, ca }, clock)
      return new S3Target({ name, cluster, prefix }, client, files)
    }
    const { volume = '', path = defaultPath } = folder ?? {}
    // In a container volumes are folders of its host.
    const mounted = () => mode === 'container' || store.list(VolumeMountStatus).some(({ spec }) => spec.target === `/var/mnt/${volume}`)
    const missing = () => (mounted() ? undefined : `volume "${volume}" is not mounted: declare it with a UserVolumeConfig`)
    return new FolderTarget({ name, cluster, folder: `/var/mnt/${volume}/${path}`, missing }, files)
  }
