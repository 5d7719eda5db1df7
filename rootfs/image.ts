/** `./mkimage.sh`: builds all boot media in dist/. `--help` lists the options. */
import type { KeyObject } from 'node:crypto'
import { copyFileSync, existsSync, mkdirSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { virtualDisk } from '../src/programs/factory/formats/convert.ts'
import { writeGcp } from '../src/programs/factory/formats/gcp.ts'
import { writeOva } from '../src/programs/factory/formats/ova.ts'
import { writeQcow2 } from '../src/programs/factory/formats/qcow2.ts'
import { writeVhd } from '../src/programs/factory/formats/vhd.ts'
import { writeVmdk } from '../src/programs/factory/formats/vmdk.ts'
import { signatureLine } from '../src/programs/factory/image-key.ts'
import { metaParameter } from '../src/programs/factory/meta-parameter.ts'
import { nodeImageFile } from '../src/release.ts'
import { hashFile } from './build/cache.ts'
import { installDependencies } from './build/dependencies.ts'
import { failed } from './build/failure.ts'
import { buildPackages, crossPackagesOf, type HostPackage, prepareHost } from './build/host.ts'
import { formatSize, formatTime, type Task, task } from './build/progress.ts'
import { type SizeRow, sizeTable, table } from './build/size-table.ts'
import { commandLine } from './image/command-line.ts'
import { installerIndex, installersOf, writeInstallerIndex } from './image/container/installer-archive.ts'
import { writeNodeImage } from './image/container/node-image.ts'
import { writeDisk } from './image/disk.ts'
import { checkGiven } from './image/given.ts'
import { type CacheFile, imageCacheFiles } from './image/image-cache.ts'
import { fileSystemPackage } from './image/image-cache-disk.ts'
import { takeStarters } from './image/kernel.ts'
import { imageKey } from './image/key.ts'
import { help, type ImageOptions, type Product as ImageProduct, imageOptions } from './image/options.ts'
import { type Board, boardOf } from './image/overlay/overlay.ts'
import { writeInstaller, writeIso, writeNetworkInitramfs } from './image/products.ts'
import { makeRelease, type Release, sizeOf, version } from './image/release.ts'
import { checkReproducible } from './image/reproducible.ts'
import { makeRoot } from './image/root.ts'
import { enrollment, readPcrKey } from './image/secure-boot.ts'
import { buildStage0 } from './image/stage0.ts'
import { compilePackages } from './kernel/compile.ts'

/** Debian packages an image takes besides those of the root file system. */
const imagePackages: readonly HostPackage[] = [
  { name: 'kmod', why: 'works out which modules need which', shown: '/usr/sbin/depmod' },
  { name: 'grub-common', why: 'puts GRUB together for BIOS', shown: '/usr/bin/grub-mkimage' },
]

const signingPackage: HostPackage = { name: 'sbsigntool', why: 'signs for Secure Boot', shown: '/usr/bin/sbsign' }

/** Makes one file; it appears under its name only when it is whole. */
type Product = (name: string, write: (path: string) => unknown) => Promise<void>

async function make(options: ImageOptions, args: readonly string[]): Promise<void> {
  const started = performance.now()
  const { output, secureBoot, only, target } = options
  const { suffix } = target
  const forMachines = [...only].some((product) => product !== 'oci')
  await installDependencies()
  await checkGiven(options)
  await prepareHost([
    ...buildPackages,
    ...crossPackagesOf(target),
    ...(forMachines ? imagePackages : []),
    ...(forMachines && options.kernel === 'hardened' ? compilePackages : []),
    ...(secureBoot ? [signingPackage] : []),
    ...(options.imageCache && only.has('disk') ? [fileSystemPackage] : []),
  ])
  const { key, path: keyPath, made } = imageKey(options.key)
  if (made) console.error(`a signing key was generated: "${keyPath}"; machines accept only upgrades signed with it, so keep it`)
  mkdirSync(output, { recursive: true })
  sweep(output)
  const work = join(output, `.image-${process.pid}`)
  mkdirSync(work)
  const done: string[] = []
  const product: Product = async (name, write) => {
    await during(`making ${name}`, () => write(join(work, name)))
    renameSync(join(work, name), join(output, name))
    done.push(name)
  }
  try {
    if (only.has('oci')) await product(nodeImageFile(target.arch), (path) => writeNodeImage(path, options))
    const machine = forMachines ? await makeForMachines(options, { work, key, product }) : undefined
    const sums = await Promise.all(done.map(async (name) => ({ name, ...(await hashFile(join(output, name))) })))
    const text = sums.map(({ name, sha256 }) => `${sha256}  ${name}\n`).join('')
    await product(`ichor-SHA256SUMS${suffix}`, (path) => writeFileSync(path, text))
    await product(`ichor-SHA256SUMS${suffix}.sig`, (path) => writeFileSync(path, signatureLine(Buffer.from(text), key)))
    if (machine) console.log(`${sizeTable(machine.root.rows)}\n`)
    console.log(table([['FILE', 'SIZE', 'SHA256'], ...sums.map(({ name, size, sha256 }) => [name, formatSize(size), sha256.slice(0, 16)])]))
    if (machine) console.log(`\n${sizes(machine.root.rows, machine.release)}\n${machine.summary}, in "${output}"`)
    console.log(`${formatTime(performance.now() - started)} in all`)
    if (options.checkReproducible) {
      // The second run has no release of another architecture beside it.
      const alone = done.filter((name) => name !== installerIndex)
      await checkReproducible(alone, output, again(args), keyPath)
    }
  } finally {
    rmSync(work, { recursive: true, force: true })
  }
}

interface Making {
  work: string
  key: KeyObject
  product: Product
}

/** Shows a task while it runs. */
async function during<T>(what: string, run: (shown: Task) => T | Promise<T>): Promise<T> {
  const shown = task(what)
  try {
    const result = await run(shown)
    shown.done()
    return result
  } catch (error) {
    shown.failed()
    throw error
  }
}

/** Everything that machines start from, and what it consists of. */
async function makeForMachines(options: ImageOptions, { work, key, product }: Making) {
  const { output, secureBoot, only, target } = options
  const { arch, suffix } = target
  // A disk has the values of META where a machine keeps them.
  const values = options.meta.length > 0 && ['iso', 'pxe', 'uki'].some((each) => only.has(each as ImageProduct))
  const board = options.overlay && (await boardOf(options.overlay, target))
  const extra = [...(board?.kernelArguments ?? []), ...options.extraKernelArgs, ...(values ? [metaParameter(options.meta)] : [])]
  const line = commandLine(extra, options.platform, target)
  const starters = await takeStarters({ target, kind: options.kernel, relock: options.relock, locked: options.locked })
  const stage0 = await buildStage0(target)
  const root = await makeRoot(join(work, 'root.sqsh'), starters, options)
  const pcrKey = options.pcrKey === undefined ? undefined : readPcrKey(options.pcrKey)
  const inside = { starters, stage0, root: root.path, commandLine: line, kubernetes: options.kubernetes.version }
  const parts = { ...inside, target, key, secureBoot, pcrKey }
  const release = await during('making the release', (shown) => makeRelease(join(work, 'release'), parts, (what) => shown.at(what)))
  const of = (name: string) => (path: string) => copyFileSync(join(release.folder, name), path)
  const keys = { how: options.enroll, files: secureBoot && options.enroll !== 'off' ? await enrollment(secureBoot, work) : [] }
  const cache = options.imageCache ? await imageCacheFiles(options.imageCache, join(work, 'image-cache'), arch) : []
  if (only.has('iso')) await product(`ichor-${arch}.iso`, (path) => writeIso(path, release, keys, cache))
  if (only.has('disk')) {
    await writeDisks(options, release, { work, product, cache, board })
  }
  if (only.has('pxe')) {
    await product(`ichor-vmlinuz${suffix}`, of('vmlinuz'))
    await product(`ichor-initramfs${suffix}`, (path) => writeNetworkInitramfs(path, release))
    await product(`ichor-cmdline${suffix}`, of('cmdline'))
  }
  if (only.has('installer')) await product(`ichor-installer-${arch}.tar`, (path) => writeInstaller(path, release))
  await product(`ichor-${arch}.efi`, of('vmlinuz.efi'))
  await product(`ichor-${arch}.manifest`, of('manifest'))
  await product(`ichor-${arch}.manifest.sig`, of('manifest.sig'))
  await product(`ichor-${arch}.spdx.json`, (path) => writeFileSync(path, root.sbom))
  await product(`ichor-${arch}.vex.json`, (path) => writeFileSync(path, root.vex))
  const installers = only.has('installer') ? installersOf(output, version) : []
  if (installers.length > 1) await product(installerIndex, (path) => writeInstallerIndex(path, installers))
  // What an earlier version has left would be taken for this one.
  else if (only.has('installer')) rmSync(join(output, installerIndex), { force: true })
  return { root, release, summary: `kernel ${starters.kernel.release}, root ${release.verity.rootHash}` }
}

/** The disk in the requested formats, all from the raw one. */
async function writeDisks(
  { output, target, diskFormats, diskFirmware, meta }: ImageOptions,
  release: Release,
  { work, product, cache, board }: Omit<Making, 'key'> & { cache: readonly CacheFile[]; board: Board | undefined },
) {
  const name = `ichor-${target.arch}`
  const kept = diskFormats.has('raw')
  const raw = join(kept ? output : work, `${name}.raw`)
  const parts = { firmware: diskFirmware, meta, cache, board }
  if (kept) await product(`${name}.raw`, (path) => writeDisk(path, release, parts))
  else await during('making the disk', () => writeDisk(raw, release, parts))
  const { rootHash } = release.verity
  if (diskFormats.has('qcow2')) await product(`${name}.qcow2`, (path) => writeQcow2(path, raw, virtualDisk))
  if (diskFormats.has('vhd')) await product(`${name}.vhd`, (path) => writeVhd(path, raw, rootHash))
  if (diskFormats.has('gcp')) await product(`${name}.raw.tar.gz`, (path) => writeGcp(path, raw))
  const vmdk = (path: string) => writeVmdk(path, raw, virtualDisk, rootHash)
  if (diskFormats.has('vmdk')) await product(`${name}.vmdk`, vmdk)
  if (!diskFormats.has('ova')) return
  const inside = join(diskFormats.has('vmdk') ? output : work, `${name}.vmdk`)
  if (!diskFormats.has('vmdk')) await during('making the disk of the OVA', () => vmdk(inside))
  const appliance = { name, version, firmware: diskFirmware, disk: virtualDisk }
  await product(`${name}.ova`, (path) => writeOva(path, inside, appliance))
}

/** The sizes that the configuration requests. */
function sizes(rows: readonly SizeRow[], release: Release): string {
  const stored = (parts: readonly string[]) => rows.filter(({ part }) => parts.includes(part)).reduce((sum, row) => sum + row.stored, 0)
  const root = sizeOf(release, 'root.sqsh')
  const modules = stored(['modules', 'firmware'])
  const kubernetes = stored(['kube'])
  const slot = root + sizeOf(release, 'vmlinuz.efi')
  return [
    `root ${formatSize(root)}: ${formatSize(modules)} modules and firmware, ${formatSize(kubernetes)} Kubernetes`,
    `the system alone ${formatSize(root - modules - kubernetes)}; a slot on a disk takes ${formatSize(slot)}`,
  ].join(', ')
}

/** The arguments of a second run: it has a key and a place of its own, and does not check itself. */
function again(args: readonly string[]): string[] {
  const kept: string[] = []
  const withValue = ['--key', '--output']
  for (const [at, arg] of args.entries()) {
    if (withValue.includes(arg) || withValue.includes(args[at - 1] ?? '')) continue
    if (!/^--(key|output)=/.test(arg) && arg !== '--check-reproducible') kept.push(arg)
  }
  return kept
}

/** Takes away what runs that were killed have left. */
function sweep(folder: string): void {
  for (const name of readdirSync(folder)) {
    const pid = name.match(/^\.image-(\d+)$/)?.[1]
    if (pid && !existsSync(`/proc/${pid}`)) rmSync(join(folder, name), { recursive: true, force: true })
  }
}

try {
  const args = process.argv.slice(2)
  const options = imageOptions(args)
  if (options) await make(options, args)
  else process.stdout.write(help)
} catch (error) {
  failed(error)
}
