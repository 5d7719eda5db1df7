/** `./mkimage.sh`: kernel, initramfs and command line of a machine, in dist/. `--help` says what can be chosen. */
import { copyFileSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { dist } from './build/binary.ts'
import { hashFile } from './build/cache.ts'
import { failed } from './build/failure.ts'
import { buildPackages, prepareHost } from './build/host.ts'
import { formatSize, formatTime, task } from './build/progress.ts'
import { buildRootfs } from './build/rootfs.ts'
import { commandLine } from './image/command-line.ts'
import { writeInitramfs } from './image/initramfs.ts'
import { takeKernel } from './image/kernel.ts'
import { modulesImage, packModules } from './image/modules-image.ts'
import { buildStage0 } from './image/stage0.ts'

const help = `Makes the files a machine starts from, in dist/:
  ichor-vmlinuz      the kernel
  ichor-initramfs    stage 0, the root file system and the kernel's modules
  ichor-cmdline      what the kernel is to be started with
  ichor-SHA256SUMS   their hashes

usage: ./mkimage.sh [flags]

  --arch amd64               the only architecture so far
  --output FOLDER            where the files go (dist/)
  --platform NAME            where the configuration comes from (metal)
  --extra-kernel-arg ARG     one more kernel parameter, or with "-" before its name one less; may be repeated
  --small                    the root file system that is packed smallest: 30 MB less, slower to start
  --lock                     takes the archive's present kernel and writes rootfs/image.lock anew
  --help                     this text
`

/** Something is asked for that cannot be done; the message says what can. */
class UsageError extends Error {
  override name = 'UsageError'
}

const options = {
  arch: { type: 'string', default: 'amd64' },
  output: { type: 'string', default: dist },
  platform: { type: 'string', default: 'metal' },
  'extra-kernel-arg': { type: 'string', multiple: true, default: [] as string[] },
  small: { type: 'boolean', default: false },
  lock: { type: 'boolean', default: false },
  help: { type: 'boolean', default: false },
} as const

function chosen() {
  try {
    return parseArgs({ options, strict: true }).values
  } catch (error) {
    throw new UsageError(`${(error as Error).message.split('\n')[0]}; ./mkimage.sh --help lists the flags`)
  }
}

async function main(): Promise<void> {
  const values = chosen()
  if (values.help) {
    process.stdout.write(help)
    return
  }
  const started = performance.now()
  if (values.arch !== 'amd64') throw new UsageError(`--arch ${values.arch}: images are made for amd64 only`)
  if (!/^[a-z][a-z0-9-]*$/.test(values.platform)) throw new UsageError(`--platform "${values.platform}": must be a name like "metal"`)
  const line = commandLine(values['extra-kernel-arg'], values.platform)
  await prepareHost([...buildPackages, { name: 'kmod', why: 'works out which modules need which', shown: '/usr/sbin/depmod' }])
  await buildRootfs({ nodesOnly: !values.small })
  const kernel = await takeKernel(values.lock)
  const stage0 = await buildStage0()
  await packModules(kernel)

  const folder = resolve(values.output)
  mkdirSync(folder, { recursive: true })
  const initramfs = join(folder, 'ichor-initramfs')
  const unfinished = `${initramfs}.${process.pid}`
  const shown = task('writing the initramfs')
  try {
    await writeInitramfs(unfinished, {
      kernel,
      stage0,
      rootfs: join(dist, values.small ? 'rootfs.sqsh' : 'rootfs.node.sqsh'),
      modules: join(dist, modulesImage),
    })
    renameSync(unfinished, initramfs)
  } finally {
    rmSync(unfinished, { force: true })
  }
  shown.done()
  copyFileSync(kernel.image, join(folder, 'ichor-vmlinuz'))
  writeFileSync(join(folder, 'ichor-cmdline'), `${line}\n`)

  const names = ['ichor-vmlinuz', 'ichor-initramfs', 'ichor-cmdline']
  const sums = await Promise.all(names.map(async (name) => ({ name, ...(await hashFile(join(folder, name))) })))
  writeFileSync(join(folder, 'ichor-SHA256SUMS'), sums.map(({ name, sha256 }) => `${sha256}  ${name}\n`).join(''))
  console.log(`kernel ${kernel.release}`)
  for (const { name, size } of sums) console.log(`${join(folder, name).padEnd(48)} ${formatSize(size).padStart(10)}`)
  console.log(`${formatTime(performance.now() - started)} in all`)
}

try {
  await main()
} catch (error) {
  failed(error)
}
