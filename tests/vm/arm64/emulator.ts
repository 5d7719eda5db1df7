/** The emulator of machines with arm64 and UEFI. */
import { copyFileSync, existsSync } from 'node:fs'
import { join } from 'node:path'

/** A machine. */
export interface Arm64Machine {
  /** Where the variables of its firmware are kept. */
  readonly folder: string
  readonly console: string
  /** The file of its disk. */
  readonly disk: string
  readonly cdrom?: string | undefined
  /** Mebibytes. */
  readonly memory: number
}

/**
 * The arguments for a machine whose API is at 127.0.0.1:`port`. The processor is the oldest in use for servers, so that nothing newer
 * is taken for granted.
 */
export const arm64Emulator =
  ({ folder, console: output, disk, cdrom, memory }: Arm64Machine) =>
  (port: number): string[] => {
    const variables = join(folder, 'variables.fd')
    if (!existsSync(variables)) copyFileSync('/usr/share/AAVMF/AAVMF_VARS.fd', variables)
    return [
      ...['qemu-system-aarch64', '-nodefaults', '-no-user-config', '-display', 'none', '-monitor', 'none'],
      ...['-machine', 'virt,gic-version=max', '-accel', 'tcg,thread=multi', '-cpu', 'cortex-a72', '-smp', '2', '-m', String(memory)],
      ...['-chardev', `file,id=console,path=${output},append=on`, '-serial', 'chardev:console'],
      ...['-drive', 'if=pflash,unit=0,format=raw,readonly=on,file=/usr/share/AAVMF/AAVMF_CODE.fd'],
      ...['-drive', `if=pflash,unit=1,format=raw,file=${variables}`, '-device', 'virtio-rng-pci', '-device', 'virtio-scsi-pci,id=scsi'],
      ...['-drive', `if=none,id=system,format=raw,discard=unmap,file=${disk}`, '-device', 'virtio-blk-pci,drive=system,bootindex=1'],
      ...(cdrom ? ['-drive', `if=none,id=cd,media=cdrom,readonly=on,format=raw,file=${cdrom}`] : []),
      ...(cdrom ? ['-device', 'scsi-cd,drive=cd,bus=scsi.0,bootindex=2'] : []),
      ...['-netdev', `user,id=net,restrict=on,hostfwd=tcp:127.0.0.1:${port}-:50000`, '-device', 'virtio-net-pci,netdev=net'],
    ]
  }
