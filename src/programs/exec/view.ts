/** What a process sees of the machine's file systems: less than there is, in a mount namespace of its own. */
import { closeSync, constants, openSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { exists, mkdirAll, stat } from '../../linux/fs/files.ts'
import { bind, mount, propagate, readOnlyBelow } from '../../linux/fs/mount.ts'
import type { ExecOptions } from './options.ts'

const O_PATH = 0o10000000

/** A place in the file system that stays reachable once something is mounted over it. */
interface Held {
  readonly path: string
  readonly fd: number
  readonly isFolder: boolean
}

/** Hides folders and files. Later mounts of the machine propagate here too, below the hidden ones. */
export function restrictView({
  hide,
  show,
  hidesProcesses,
  readOnly,
}: Pick<ExecOptions, 'hide' | 'show' | 'hidesProcesses' | 'readOnly'>): void {
  propagate('/', 'rslave')
  const shown = show.map(hold)
  const nothing = hold('/dev/null')
  if (hidesProcesses)
    mount({ source: 'proc', target: '/proc', type: 'proc', flags: ['nosuid', 'nodev', 'noexec'], data: 'hidepid=invisible' })
  for (const path of hide.filter(exists))
    if (stat(path).isDirectory())
      mount({ source: 'tmpfs', target: path, type: 'tmpfs', flags: ['nosuid', 'nodev', 'noexec'], data: 'mode=755,size=1m' })
    else bindHeld(nothing, path)
  for (const held of shown) {
    if (held.isFolder) mkdirAll(held.path)
    else {
      mkdirAll(dirname(held.path))
      if (!exists(held.path)) writeFileSync(held.path, '')
    }
    bindHeld(held, held.path)
  }
  for (const { fd } of [...shown, nothing]) closeSync(fd)
  if (readOnly) readOnlyBelow('/')
}

function hold(path: string): Held {
  return { path, fd: openSync(path, O_PATH | constants.O_NOFOLLOW), isFolder: stat(path).isDirectory() }
}

const bindHeld = ({ fd }: Held, target: string) => bind(`/proc/self/fd/${fd}`, target, { recursive: true })
