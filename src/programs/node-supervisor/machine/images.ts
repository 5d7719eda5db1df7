import { readFileSync } from 'node:fs'
import { join } from 'node:path'

/** What `mkimage.sh` leaves in a folder, as far as machines are started from it. */
export function machineImages(folder: string) {
  return {
    iso: join(folder, 'ichor-amd64.iso'),
    disk: join(folder, 'ichor-amd64.raw'),
    kernel: join(folder, 'ichor-vmlinuz'),
    initramfs: join(folder, 'ichor-initramfs'),
    commandLine: join(folder, 'ichor-cmdline'),
  }
}

/** The parameters that the kernel of an image needs. */
export function readCommandLine(file: string): string {
  return readFileSync(file, 'utf8').trim()
}
