/** The partition of container images on a disk: ext4, made without mounting it, so that equal images give equal bytes. */
import { writeFileSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { dirname } from 'node:path'
import type { HostPackage } from '../build/host.ts'
import { run } from '../build/run.ts'
import type { CacheFile } from './image-cache.ts'

/** What makes the file system. */
export const fileSystemPackage: HostPackage = { name: 'e2fsprogs', why: 'makes the volume of container images', shown: '/usr/sbin/debugfs' }

const mebibyte = 1 << 20
/** Smaller ones have no room for their own tables. */
const leastSize = 32 * mebibyte

/** Bytes of the partition: those of the images and a fifth more. */
export function imageCacheSize(files: readonly CacheFile[]): number {
  const bytes = files.reduce((sum, { size }) => sum + Math.ceil(size / 4096) * 4096, 0)
  return Math.max(leastSize, Math.ceil((bytes * 1.2) / mebibyte) * mebibyte)
}

/** Writes the file system to a file. */
export async function writeImageCache(path: string, files: readonly CacheFile[], uuid: string): Promise<void> {
  // The tools take the time from here instead of the clock.
  const env = { ...process.env, E2FSPROGS_FAKE_TIME: '1' }
  const blob = await open(path, 'w')
  await blob.truncate(imageCacheSize(files))
  await blob.close()
  const options = `hash_seed=${uuid},root_owner=0:0,lazy_itable_init=0,lazy_journal_init=0,nodiscard`
  await run(['/usr/sbin/mke2fs', '-q', '-F', '-t', 'ext4', '-m', '0', '-L', 'IMAGECACHE', '-U', uuid, '-E', options, path], { env })
  const script = `${path}.commands`
  writeFileSync(script, `${commands(files).join('\n')}\n`)
  await run(['/usr/sbin/debugfs', '-w', '-f', script, path], { env })
  // It ends well whatever a command has met.
  await run(['/usr/sbin/e2fsck', '-fn', path], { env })
  for (const { path: each, size } of files) {
    const about = await run(['/usr/sbin/debugfs', '-R', `stat "/${each}"`, path], { env })
    if (!new RegExp(`\\bSize: ${size}\\b`).test(about)) throw new Error(`image cache: "${each}" was not written`)
  }
}

function commands(files: readonly CacheFile[]): string[] {
  const made = new Set<string>()
  const lines = ['set_current_time 19700101000001']
  const folder = (path: string) => {
    if (path === '.' || made.has(path)) return
    folder(dirname(path))
    made.add(path)
    lines.push(`mkdir "/${path}"`)
  }
  for (const { path, file } of files) {
    folder(dirname(path))
    lines.push(`write "${file}" "/${path}"`, `set_inode_field "/${path}" mode 0100644`)
  }
  return lines
}
