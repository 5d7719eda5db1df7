/**
 * Raspberry Pi with 64 bits (overlay `rpi_generic`): the firmware of the board reads `config.txt` in the root of the first FAT partition,
 * which has it start U-Boot; that offers UEFI to systemd-boot.
 */
import { UsageError } from '../../build/failure.ts'
import type { Artifacts } from './artifacts.ts'
import type { Board, BoardOptions } from './overlay.ts'

const firmwareFolder = 'arm64/firmware/boot/'
const boot = 'arm64/u-boot/rpi_generic/u-boot.bin'

/** Settings of the firmware (raspberrypi.com, config.txt). */
const settings = `# U-Boot is started, which starts the boot loader of this partition.
arm_64bit=1
kernel=u-boot.bin
# The serial line on the pins 8 and 10 is the console: Bluetooth would take its controller.
enable_uart=1
dtoverlay=disable-bt
dtoverlay=disable-wifi
# A server needs no more memory for graphics.
gpu_mem=32
`

const kernelArguments = ['console=tty0', 'console=ttyAMA0,115200', 'sysctl.kernel.kexec_load_disabled=1', 'talos.dashboard.disabled=1']

/** Names of the options. */
export const rpiOptions = ['configTxt', 'configTxtAppend'] as const

/** The files of the boot partition. Throws UsageError. */
export function rpiGeneric(origin: string, artifacts: Artifacts, { configTxt, configTxtAppend }: BoardOptions): Board {
  const files = new Map<string, Buffer>()
  for (const [path, content] of artifacts) if (path.startsWith(firmwareFolder)) files.set(path.slice(firmwareFolder.length), content)
  if (!files.has('start4.elf') && !files.has('start.elf'))
    throw new UsageError(`overlay "${origin}": it has no firmware: "artifacts/${firmwareFolder}start4.elf" is missing`)
  const loader = artifacts.get(boot)
  if (!loader) throw new UsageError(`overlay "${origin}": "artifacts/${boot}" is missing`)
  files.set('u-boot.bin', loader)
  const parts = [configTxt ?? settings, ...(configTxtAppend === undefined ? [] : [configTxtAppend])]
  files.set('config.txt', Buffer.from(parts.map((part) => (part.endsWith('\n') ? part : `${part}\n`)).join('')))
  return { kernelArguments, files }
}
