/** A kernel module of a few bytes, as compilers and the kernel's scripts lay one out. */
import type { KernelModule } from '../../../src/wire/modules/dependencies.ts'
import { parseModule } from '../../../src/wire/modules/module-file.ts'
import { moduleName } from '../../../src/wire/modules-dep.ts'

export interface Built {
  readonly info: readonly string[]
  /** Symbols that it exports. */
  readonly exported?: readonly string[]
  readonly needed?: readonly string[]
  readonly signed?: boolean
  /** Whether its symbols have checksums, as with CONFIG_MODVERSIONS. */
  readonly versions?: boolean
}

export function builtModule({ info, exported = [], needed = [], signed = true, versions = true }: Built): Buffer {
  const strings = (all: readonly string[]) => Buffer.from(`\0${all.map((each) => `${each}\0`).join('')}`)
  const symbols = [
    ...needed.map((name) => ({ name, section: 0 })),
    ...exported.map((name) => ({ name: versions ? `__crc_${name}` : name, section: 1 })),
  ]
  const names = strings(symbols.map(({ name }) => name))
  const table = Buffer.alloc((symbols.length + 1) * 24)
  let place = 1
  for (const [at, { name, section }] of symbols.entries()) {
    table.writeUInt32LE(place, (at + 1) * 24)
    table[(at + 1) * 24 + 4] = 0x10 // STB_GLOBAL
    table.writeUInt16LE(section, (at + 1) * 24 + 6)
    place += name.length + 1
  }
  const sections: { name: string; content: Buffer; type: number }[] = [
    { name: '.modinfo', content: strings(info).subarray(1), type: 1 },
    { name: '__ksymtab_strings', content: Buffer.from(exported.map((name) => `${name}\0\0`).join('')), type: 1 },
    { name: '.symtab', content: table, type: 2 },
    { name: '.strtab', content: names, type: 3 },
  ]
  const titles = [...sections.map(({ name }) => name), '.shstrtab']
  sections.push({ name: '.shstrtab', content: strings(titles), type: 3 })
  const header = Buffer.alloc(64)
  header.write('\x7fELF\x02\x01\x01', 'latin1')
  header.writeUInt16LE(1, 16) // ET_REL
  header.writeUInt16LE(62, 18) // EM_X86_64
  header.writeUInt32LE(1, 20)
  header.writeUInt16LE(64, 52)
  header.writeUInt16LE(64, 58)
  header.writeUInt16LE(sections.length + 1, 60)
  header.writeUInt16LE(sections.length, 62)
  const heads = [Buffer.alloc(64)]
  let offset = 64
  let title = 1
  for (const { name, content, type } of sections) {
    const head = Buffer.alloc(64)
    head.writeUInt32LE(title, 0)
    head.writeUInt32LE(type, 4)
    head.writeBigUInt64LE(BigInt(offset), 24)
    head.writeBigUInt64LE(BigInt(content.length), 32)
    heads.push(head)
    offset += content.length
    title += name.length + 1
  }
  header.writeBigUInt64LE(BigInt(offset), 40)
  const whole = Buffer.concat([header, ...sections.map(({ content }) => content), ...heads])
  if (!signed) return whole
  const signature = Buffer.alloc(100, 5)
  const trailer = Buffer.alloc(12)
  trailer[2] = 2 // PKEY_ID_PKCS7
  trailer.writeUInt32BE(signature.length, 8)
  return Buffer.concat([whole, signature, trailer, Buffer.from('~Module signature appended~\n')])
}

/** Modules as they are read from their files, by their paths. */
export const kernelModules = (modules: Readonly<Record<string, Built>>): KernelModule[] =>
  Object.entries(modules).map(([path, built]) => ({ path, name: moduleName(path), file: parseModule(builtModule(built)) }))

/** A tree of modules that need each other, serve devices and wait for others. */
export const family: Readonly<Record<string, Built>> = {
  'kernel/a/first-one.ko': { info: ['alias=pci:v00008086d*sv*sd*bc*sc*i*', 'alias=net-pf-16', 'depends='], exported: ['first', 'second'] },
  'kernel/a/second.ko': {
    info: ['alias=of:N*T[a-c]-x', 'softdep=pre: first_one post: third'],
    needed: ['first', 'printk'],
    exported: ['more'],
  },
  'kernel/b/third.ko': {
    info: ['alias=devname:net/tun', 'alias=char-major-10-200', 'alias=pci:v00008086d*sv*sd*bc*sc*i*', 'alias=a[b'],
    needed: ['more', 'printk'],
  },
  'kernel/b/fourth.ko': { info: ['description=n\u00fc'], needed: ['second', 'more'], exported: ['fourth_a'] },
  'kernel/c/fifth.ko': { info: [], needed: ['fourth_a', 'first'] },
}
export const order =
  'kernel/b/third.ko\nkernel/a/absent.ko\nkernel/c/fifth.ko\nkernel/a/second.ko\nkernel/b/fourth.ko\nkernel/a/first-one.ko\n'
