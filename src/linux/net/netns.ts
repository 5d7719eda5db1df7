/**
 * Network namespaces. A socket keeps the namespace it was created in, so entering one for the duration of a synchronous
 * function is enough to work in it; other threads are not affected.
 */
import { closeSync, mkdirSync, openSync, unlinkSync } from 'node:fs'
import { dirname } from 'node:path'
import { failedWith } from '../../wire/errno.ts'
import { bind, umount } from '../fs/mount.ts'
import { setns, unshare } from '../process/namespaces.ts'
import { translated } from '../system-error.ts'

const own = '/proc/thread-self/ns/net'

/** Runs a synchronous function in the network namespace at a path (`/run/netns/x`, `/proc/7/ns/net`) and returns to the previous one. */
export function inNetns<T>(path: string, run: () => T extends Promise<unknown> ? never : T): T {
  const target = translated('open', path, () => openSync(path, 'r'))
  try {
    return aside(() => {
      setns(target, 'net')
      return run() as T
    })
  } finally {
    closeSync(target)
  }
}

function aside<T>(run: () => T): T {
  const home = translated('open', own, () => openSync(own, 'r'))
  try {
    return run()
  } finally {
    try {
      setns(home, 'net')
    } finally {
      closeSync(home)
    }
  }
}

/** Creates a network namespace that exists while `path` is mounted. */
export function createNetns(path: string): void {
  translated('create', path, () => {
    mkdirSync(dirname(path), { recursive: true })
    closeSync(openSync(path, 'wx', 0o444))
  })
  try {
    aside(() => {
      unshare(['net'])
      bind(own, path)
    })
  } catch (error) {
    unlinkSync(path)
    throw error
  }
}

/** Removes a namespace created by createNetns, if it exists. */
export function removeNetns(path: string): void {
  try {
    umount(path, { detach: true })
  } catch (error) {
    if (!failedWith(error, 'EINVAL', 'ENOENT')) throw error // not mounted
  }
  try {
    translated('unlink', path, () => unlinkSync(path))
  } catch (error) {
    if (!failedWith(error, 'ENOENT')) throw error
  }
}
