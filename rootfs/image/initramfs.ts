/** The initramfs: stage 0, the modules it loads, and the SquashFS images of the root and of all other modules. */
import { readFileSync, statSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { cpioHeader, cpioPadding, cpioTrailer, cpioTypes } from '../../src/wire/cpio.ts'
import { moduleOrder, parseModulesDep } from '../../src/wire/modules-dep.ts'
import type { Kernel } from './kernel.ts'

/** What reading the root takes; everything else is loaded by init and udevd from the image of modules. */
const early: readonly string[] = ['loop', 'squashfs']

/** The files an initramfs is made of. */
export interface InitramfsParts {
  kernel: Kernel
  stage0: string
  rootfs: string
  modules: string
}

interface Entry {
  name: string
  mode: number
  content?: Uint8Array
  source?: string
}

/** Writes the archive; equal parts give equal bytes. */
export async function writeInitramfs(path: string, { kernel, stage0, rootfs, modules }: InitramfsParts): Promise<void> {
  const tree = join(kernel.modules, kernel.release)
  const order = moduleOrder(parseModulesDep(readFileSync(join(tree, 'modules.dep'), 'utf8')), early)
  const dir = (name: string): Entry => ({ name, mode: cpioTypes.dir | 0o755 })
  const entries: Entry[] = [
    dir('dev'),
    dir('modules'),
    dir('proc'),
    dir('root'),
    dir('sys'),
    { name: 'init', mode: cpioTypes.file | 0o755, source: stage0 },
    { name: 'modules/order', mode: cpioTypes.file | 0o644, content: Buffer.from(order.map((each) => `${base(each)}\n`).join('')) },
    ...order.map((each) => ({ name: `modules/${base(each)}`, mode: cpioTypes.file | 0o644, source: join(tree, each) })),
    { name: 'modules.sqsh', mode: cpioTypes.file | 0o444, source: modules },
    { name: 'rootfs.sqsh', mode: cpioTypes.file | 0o444, source: rootfs },
  ]
  const output = await open(path, 'w', 0o644)
  try {
    let inode = 0
    for (const { name, mode, content, source } of entries) {
      const size = content?.length ?? (source ? statSync(source).size : 0)
      inode++
      await output.write(cpioHeader({ name, mode, size }, inode))
      if (content) await output.write(content)
      if (source) for await (const chunk of Bun.file(source).stream()) await output.write(chunk)
      await output.write(cpioPadding(size))
    }
    await output.write(cpioTrailer())
  } finally {
    await output.close()
  }
}

const base = (path: string) => path.slice(path.lastIndexOf('/') + 1)
