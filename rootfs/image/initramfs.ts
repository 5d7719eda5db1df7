/**
 * The initramfs: stage 0, the modules that reading the root may take, what the root must be and whose releases are trusted.
 * For machines that are started through a network, the root itself follows in a second archive.
 */

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type InitramfsEntry, initramfsArchive, trustArchive } from '../../src/programs/factory/release/initramfs.ts'
import type { Verity } from '../../src/programs/factory/root/verity.ts'
import { cpioPadding, cpioTypes } from '../../src/wire/cpio.ts'
import { moduleName, moduleOrder, parseModulesDep } from '../../src/wire/modules-dep.ts'
import { cached, hashOf } from '../build/cache.ts'
import { present } from '../build/present.ts'
import type { Arch } from '../build/target.ts'
import type { Kernel } from './kernel.ts'
import { early, KernelError, mayHoldRoot } from './modules.ts'

/** What an initramfs is made of. */
export interface InitramfsParts {
  kernel: Kernel
  arch: Arch
  stage0: string
  verity: Verity
  /** As base64 in a line. */
  publicKey: string
}

/** Of Zstandard, which the kernel unpacks several times as fast as XZ. */
const level = 19

const dir = (name: string): InitramfsEntry => ({ name, mode: cpioTypes.dir | 0o755 })
const file = (name: string, content: Uint8Array | string, mode = 0o444): InitramfsEntry => ({
  name,
  mode: cpioTypes.file | mode,
  content: Buffer.from(content),
})

/** Kinds of names that devices on the way to a medium give themselves. */
const aliased = /^(acpi|mmc|nvme|of|pci|platform|scsi|sdio|usb|virtio|vmbus|xen):/

/** The list stage 0 reads: a module a line, `!` when always loaded, numbers of lines it needs, `=pattern` of devices. */
export function moduleList(
  order: readonly string[],
  dependencies: ReadonlyMap<string, readonly string[]>,
  aliases: string,
  arch: Arch = 'amd64',
): string {
  const patterns = new Map<string, string[]>()
  for (const line of aliases.split('\n')) {
    const [, pattern = '', name = ''] = line.match(/^alias (\S+) (\S+)$/) ?? []
    if (aliased.test(pattern)) patterns.set(name, [...(patterns.get(name) ?? []), pattern])
  }
  const numbers = new Map(order.map((path, at) => [path, at]))
  const always = new Set(early(arch).map((name) => name.replaceAll('-', '_')))
  return order
    .map((path) => {
      const name = moduleName(path)
      const needs = (dependencies.get(path) ?? []).map((each) => present(numbers.get(each), `module "${each}"`)).sort((a, b) => a - b)
      return [base(path), ...(always.has(name) ? ['!'] : []), ...needs, ...(patterns.get(name) ?? []).map((each) => `=${each}`)].join(' ')
    })
    .map((line) => `${line}\n`)
    .join('')
}

/** Bytes of the list and modules in it that stage 0 has room for. */
const limits = { list: (1 << 20) - 1, modules: 512 }

/** The archives, one behind the other. Equal parts give equal bytes. */
export async function makeInitramfs({ kernel, arch, stage0, verity, publicKey }: InitramfsParts): Promise<Buffer> {
  const tree = join(kernel.modules, kernel.release)
  const table = (name: string) => readFileSync(join(tree, name), 'utf8')
  const dependencies = parseModulesDep(table('modules.dep'))
  const wanted = early(arch).filter((name) => !kernel.builtin.has(name.replaceAll('-', '_')))
  const order = moduleOrder(dependencies, [...wanted, ...kernel.paths.filter(mayHoldRoot).map(moduleName)])
  const list = moduleList(order, dependencies, table('modules.alias'), arch)
  if (order.length > limits.modules || Buffer.byteLength(list) >= limits.list)
    throw new KernelError(`stage 0 has room for ${limits.modules} modules and ${limits.list} bytes of their list, this kernel needs more`)
  const bulk = initramfsArchive([
    ...['dev', 'ichor', 'medium', 'modules', 'proc', 'root', 'sys'].map(dir),
    file('init', readFileSync(stage0), 0o755),
    file('modules/list', list),
    ...order.map((each) => file(`modules/${base(each)}`, readFileSync(join(tree, each)))),
  ])
  // What differs from build to build is small and comes behind, so that the bulk is compressed only when it changes.
  const part = await cached('initramfs', { bulk: hashOf(bulk), level, bun: Bun.version }, async (folder) => {
    await Bun.write(join(folder, 'bulk'), await Bun.zstdCompress(bulk, { level }))
  })
  const compressed = readFileSync(join(part.folder, 'bulk'))
  return Buffer.concat([compressed, cpioPadding(compressed.length), trustArchive(verity, publicKey)])
}

const base = (path: string) => path.slice(path.lastIndexOf('/') + 1)
