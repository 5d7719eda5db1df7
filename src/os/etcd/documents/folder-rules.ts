/** A folder in a volume for workloads. */
interface Folder {
  readonly volume?: string | undefined
  readonly path?: string | undefined
}

/** Checks the name of a volume and a path in it; `error` gets the key that is wrong. */
export function folderRules({ volume = '', path }: Folder, error: (key: string, message: string) => void): void {
  if (!/^[a-zA-Z0-9-]{1,34}$/.test(volume)) error('volume', 'the name of a volume for workloads is required, as in UserVolumeConfig')
  if (path !== undefined && (path === '' || path.split('/').some((part) => part === '' || part === '.' || part === '..')))
    error('path', 'a path inside the volume is expected, like "backups/etcd"')
}
