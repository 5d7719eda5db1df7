/** What an extension may hold: nothing that would replace a part of the system, or give more rights to those who can reach it. */
import { ExtensionError } from './manifest.ts'

/** A file, folder or link of an extension. */
export interface ExtensionEntry {
  /** Absolute, as in the running system. */
  readonly path: string
  readonly type: 'file' | 'dir' | 'symlink' | 'other'
  /** Permissions as in chmod(2). */
  readonly mode: number
  /** Bytes of a file. */
  readonly size: number
  /** Where the content of a file is on this computer. */
  readonly source?: string
  /** Of a symbolic link. */
  readonly target?: string
}

/** Folders whose content may come from extensions, as absolute paths. */
export const extensionFolders: readonly string[] = [
  '/etc/cri/conf.d',
  '/etc/ld.so.conf.d',
  '/etc/vulkan',
  '/usr/lib/firmware',
  '/usr/lib/modules',
  '/usr/lib/udev/rules.d',
  '/usr/local',
  '/usr/share/egl',
  '/usr/share/glvnd',
]

/** Files outside of those folders. */
const extensionFiles = new Set([
  '/etc/ld.so.cache',
  '/etc/ld.so.conf',
  '/usr/bin/ldconfig',
  ...['modprobe', 'pcc', 'smi', 'ctk', 'cdi-hook'].map((name) => `/usr/bin/nvidia-${name}`),
  '/usr/bin/nvme',
  '/usr/lib/ld-linux-aarch64.so.1',
  '/usr/lib/ld-linux-x86-64.so.2',
])

/** Of many faults of one kind, so many are listed. */
const mostFaults = 20

/** Throws ExtensionError with a line for each entry that may not be in an extension. */
export function checkContent(origin: string, entries: readonly ExtensionEntry[]): void {
  const faults = entries.flatMap((entry) => faultOf(entry) ?? [])
  if (faults.length === 0) return
  const more = faults.length - mostFaults
  throw new ExtensionError(origin, [...faults.slice(0, mostFaults), ...(more > 0 ? [`${more} more entries have such faults`] : [])])
}

function faultOf({ path, type, mode }: ExtensionEntry): string | undefined {
  if (type === 'other') return `"${path}" is neither a file, a folder nor a symbolic link: remove it`
  if (type === 'dir') return mode & 0o002 ? `folder "${path}" can be written by everyone: remove that permission` : undefined
  if (type === 'file' && mode & 0o002) return `"${path}" can be written by everyone: remove that permission`
  if (type === 'file' && mode & 0o6000) return `"${path}" would run with the rights of its owner: remove set-user-ID and set-group-ID`
  if (extensionFiles.has(path) || extensionFolders.some((folder) => path.startsWith(`${folder}/`))) return undefined
  return `"${path}" is outside of what extensions may hold: move it below /usr/local`
}
