/**
 * Disks with arrays and volume groups, made by Debian's own mdadm and lvm2: a small machine of Debian's kernel with those programs
 * makes them, since they need a device mapper.
 */
import { existsSync, readFileSync, realpathSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { takeStarters } from '../../../rootfs/image/kernel.ts'
import { initramfsArchive } from '../../../src/programs/factory/release/initramfs.ts'
import { cpioTypes } from '../../../src/wire/cpio.ts'
import { moduleOrder, parseModulesDep } from '../../../src/wire/modules-dep.ts'
import { finished } from '../../support/command-result.ts'
import { TestMachine } from '../machine.ts'

const modules = ['virtio_pci', 'virtio_blk', 'crc32c_generic', 'dm-mod', 'dm-raid', 'raid1', 'dm-thin-pool', 'ext4']
const programs = ['/bin/busybox', '/sbin/lvm', '/sbin/mdadm', '/sbin/mke2fs']

type Disks = Parameters<typeof TestMachine.start>[0]['disks']

/** Runs commands of a shell on a machine with these disks, /dev/vda and on; they must end with a line `made`. */
export async function makeDisks(folder: string, disks: Disks, commands: string): Promise<void> {
  const { kernel } = await takeStarters()
  const dependencies = parseModulesDep(readFileSync(join(kernel.modules, kernel.release, 'modules.dep'), 'utf8'))
  const order = moduleOrder(dependencies, modules)
  const files = new Map<string, string>()
  for (const program of programs) {
    files.set(program, program)
    for (const library of await librariesOf(program)) files.set(library, library)
  }
  for (const path of order) files.set(`/modules/${basename(path)}`, join(kernel.modules, kernel.release, path))
  const script = `#!/bin/busybox sh
export PATH=/sbin:/bin
/bin/busybox --install -s /bin
mount -t devtmpfs none /dev; mount -t proc none /proc; mount -t sysfs none /sys; mount -t tmpfs none /run
exec >/dev/ttyS0 2>&1
${order.map((path) => `insmod /modules/${basename(path)}`).join('\n')}
set -ex
${commands}
sync
echo made
reboot -f
`
  writeFileSync(join(folder, 'ichor-initramfs'), archive(files, script))
  writeFileSync(join(folder, 'ichor-vmlinuz'), readFileSync(kernel.image))
  writeFileSync(join(folder, 'ichor-cmdline'), 'console=ttyS0 quiet panic=-1')
  const machine = await TestMachine.start({ console: join(folder, 'maker.log'), image: folder, disks: disks ?? [], memory: 1024 })
  try {
    await machine.shows(/^made\r?$/m, 5 * 60_000)
    await machine.off(60_000)
  } finally {
    if (machine.on) await machine.unplug()
  }
}

/** The shared libraries of a program of this machine, with its loader. */
async function librariesOf(program: string): Promise<string[]> {
  if (!existsSync(program)) throw new Error(`${program} is missing: run bun tests/vm/prepare.ts`)
  const { stdout } = await finished(Bun.spawn(['ldd', program], { stdin: 'ignore', stdout: 'pipe', stderr: 'pipe' }))
  return [...stdout.matchAll(/(?:=> )?(\/\S+) \(0x/g)].map(([, path]) => path ?? '')
}

function archive(files: ReadonlyMap<string, string>, script: string): Buffer {
  const folders = new Set(['dev', 'proc', 'sys', 'run', 'mnt', 'tmp', 'etc', 'bin', 'sbin'])
  for (const path of files.keys()) {
    const steps = path.slice(1).split('/').slice(0, -1)
    for (let depth = 1; depth <= steps.length; depth++) folders.add(steps.slice(0, depth).join('/'))
  }
  const file = (name: string, content: Uint8Array) => ({ name, mode: cpioTypes.file | 0o755, content })
  return initramfsArchive([
    ...[...folders].sort().map((name) => ({ name, mode: cpioTypes.dir | 0o755 })),
    ...[...files].map(([path, source]) => file(path.slice(1), readFileSync(realpathSync(source)))),
    file('init', Buffer.from(script)),
  ])
}
