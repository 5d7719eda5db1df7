/** GRUB for BIOS: its core for CDs and sticks, and the one that is installed on disks. */
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { grubWords } from '../../src/oci/kernel-command-line.ts'
import { run } from '../build/run.ts'
import { type Target, targets } from '../build/target.ts'

const common = [
  'biosdisk',
  'part_msdos',
  'part_gpt',
  'normal',
  'linux',
  'echo',
  'test',
  'configfile',
  'serial',
  'terminal',
  'reboot',
  'halt',
  'sleep',
]
const forDisks = [...common, 'fat', 'search', 'search_label', 'loadenv']
const forMedia = [...common, 'iso9660', 'search', 'search_fs_file']

/** The folder of the assets on every medium, which is how GRUB knows its own. */
export const assetsFolderOf = ({ arch }: Target): string => `usr/install/${arch}`

const assetsFolder = assetsFolderOf(targets.amd64)

/** Both serial line and screen show the menu, whichever there is. */
const terminals = `serial --unit=0 --speed=115200
terminal_input console serial
terminal_output console serial
`

/** What GRUB does on the medium. */
export const mediumMenu = (version: string, commandLine: string, marker: string): string => `${terminals}set timeout=3
set default=0
menuentry "Ichor ${version}" {
  echo "Starting Ichor ${version} ..."
  linux /${assetsFolder}/vmlinuz ${grubWords(commandLine)}
  initrd /${assetsFolder}/initramfs.xz
}
menuentry "Ichor ${version}, erase the system disk first" {
  echo "Starting Ichor ${version} ..."
  linux /${assetsFolder}/vmlinuz ${grubWords(commandLine)} talos.experimental.wipe=system
  initrd /${assetsFolder}/initramfs.xz
}
# ${marker}
`

const onMedium = (marker: string) => `search --no-floppy --set=root --file /boot/grub/${marker}
set prefix=($root)/boot/grub
configfile ($root)/boot/grub/grub.cfg
`

const onDisk = `search --no-floppy --label BOOT --set=root
set prefix=($root)/grub
configfile ($root)/grub/grub.cfg
`

/** GRUB's parts of an image. */
export interface Grub {
  /** Starts CDs; sticks, too, through `hybrid`. */
  medium: Buffer
  hybrid: Buffer
  /** First sector of a disk, and what lies on its BIOS partition. */
  boot: Buffer
  core: Buffer
}

/** Puts GRUB together from its modules; `marker` is the name of a file that only this medium has. */
export async function makeGrub(modules: string, work: string, marker: string): Promise<Grub> {
  const make = async (format: string, config: string, names: readonly string[]) => {
    mkdirSync(work, { recursive: true })
    const [early, output] = [join(work, `${format}.cfg`), join(work, `${format}.img`)]
    writeFileSync(early, config)
    try {
      await run(['grub-mkimage', '-d', modules, '-O', format, '-p', '/boot/grub', '-c', early, '-o', output, ...names])
      return readFileSync(output)
    } finally {
      rmSync(early, { force: true })
      rmSync(output, { force: true })
    }
  }
  return {
    medium: await make('i386-pc-eltorito', onMedium(marker), forMedia),
    hybrid: readFileSync(join(modules, 'boot_hybrid.img')),
    boot: readFileSync(join(modules, 'boot.img')),
    core: await make('i386-pc', onDisk, forDisks),
  }
}
